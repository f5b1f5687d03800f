"""How well proxies rank a table: for each proxy, everything that a result must report.

In: a table and proxies. Out: a row per proxy, best first: rho and tau with intervals on the whole
table and on its parts, rho given the parameters and within equal depth and width, the precision of
the best tenth, the cost of an architecture, rho over other seeds, and published numbers. On a table
without networks its own columns, and formulas of them, are ranked. A ranking is also a run: its
config, its files, and reading them back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.errors import InputError
from lpzero.judgement.correlation import spearman
from lpzero.judgement.table import ALL, LEAST_ARCHS, TableJudge, space_name
from lpzero.proxies.base import Proxy
from lpzero.proxies.formula import FormulaProxy
from lpzero.proxies.measurements import Context, Measurements
from lpzero.proxies.published import CHOSEN_ON, figures
from lpzero.proxies.registry import get, names
from lpzero.runs.config import RunConfig, StoredConfig
from lpzero.runs.formula_run import column
from lpzero.runs.layout import RESULT, SCORES
from lpzero.runs.run import Run, read_file
from lpzero.scores.columns import RANK_OF, as_ranks, select
from lpzero.scores.values import Values
from lpzero.sketches.sketch import SketchOptions
from primitives.errors import FormulaError, Rejected
from primitives.formula import Column, Formula
from spaces.base import Space
from spaces.tables import split
from spaces.tables.source import DEPTH_WIDTH
from spaces.tables.splits import MIN_ROWS

if TYPE_CHECKING:
    from spaces.tables import ColumnTable, Table

KIND = "ranking"
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Ranking:
    """How proxies are compared: the first seeds, how many more of each kind, and the split.

    `is_brief`: of the parts of the split rho alone, as a terminal shows it. `within`: what the rows
    of a group have in common.
    """

    context: Context = field(default_factory=Context)
    seeds: int = 1
    batches: int = 1
    split_seed: int = 0
    exact: bool = False  # also score formulas on whole tensors, and compare
    is_brief: bool = False
    within: str = DEPTH_WIDTH

    def others(self) -> dict[str, list[Context]]:
        """Contexts with each seed of the weights, and with each batch; the given one first."""
        first = self.context
        return {
            "seeds": [replace(first, seed=first.seed + i) for i in range(self.seeds)],
            "batches": [
                replace(first, batch_seed=first.batch_seed + i) for i in range(self.batches)
            ],
        }


def rank(table: Table, proxies: Sequence[Proxy], ranking: Ranking | None = None) -> list[Row]:
    """A row per proxy, the one with the highest rho first."""
    return rank_with_scores(table, proxies, ranking)[0]


def rank_with_scores(
    table: Table, proxies: Sequence[Proxy], ranking: Ranking | None = None
) -> tuple[list[Row], dict[str, FloatArray]]:
    """A row per proxy, the one with the highest rho first, and the scores (n,) by proxy."""
    ranking = ranking or Ranking()
    proxies = [with_table_columns(proxy, table) for proxy in proxies]
    for proxy in proxies:
        if not proxy.applies_to(table.space):
            fitting = "without --proxy, proxies that apply are ranked"
            raise InputError(f"proxy {proxy.name} cannot score space {table.space.name}; {fitting}")
    measurements = Measurements(ranking.context)
    judged = RankedTable(table, ranking, measurements)
    for contexts in ranking.others().values():
        for context in contexts:
            prefetch(table, proxies, measurements.at(context))
    rows = [judged.row(proxy) for proxy in proxies]
    return sorted(rows, key=lambda row: -row["rho"]), judged.scores


def with_table_columns(proxy: Proxy, table: Table) -> Proxy:
    """A formula with the columns of the table beside it that it names; any other proxy as it is."""
    if not isinstance(proxy, FormulaProxy) or not proxy.formula.columns:
        return proxy
    named = {name.removeprefix(RANK_OF) for name in proxy.formula.columns}
    own = select(table.extra, list(table.extra), table.name) if table.extra else {}
    beside = [TableColumn(name, table.archs, own[name]) for name in own if name in named]
    return replace(proxy, beside=tuple(beside)) if beside else proxy


@dataclass(frozen=True, slots=True, eq=False)
class TableColumn(Proxy):
    """A table's own column as a proxy of the table's architectures (n,)."""

    name: str
    archs: Sequence[Any]
    values: FloatArray
    definition: str = "a column of the table"
    chosen_on: tuple[tuple[str, int | None], ...] = ()

    def score(
        self, space: Space[Any], archs: Sequence[Any], measurements: Measurements
    ) -> FloatArray:
        if archs is not self.archs:
            raise InputError(f"column {self.name} has values for the rows of its table alone")
        return self.values


def prefetch(table: Table, proxies: Sequence[Proxy], measurements: Measurements) -> None:
    """Compute what the proxies need from every network, all of one network together."""
    measures = {m.name: m for proxy in proxies for m in proxy.measures}
    if measures:
        measurements.records(table.space, table.archs, list(measures.values()))


def is_released(proxy: Proxy) -> bool:
    """Whether it is a released recipe, which runs on a batch of its own."""
    own = any(measure.has_own_batch for measure in proxy.measures)
    return own or proxy.name.endswith("-released")


def must_be_named(proxy: Proxy) -> bool:
    """Whether it runs on more inputs than the others, and costs more than all of them together."""
    return any(measure.n_inputs for measure in proxy.measures)


def ranked_by_default(space: Space[Any], with_released: bool = False) -> list[Proxy]:
    """The proxies that are ranked where none is named: all that apply and are not expensive."""
    return [
        proxy
        for proxy in map(get, names())
        if proxy.applies_to(space)
        and not must_be_named(proxy)
        and (with_released or not is_released(proxy))
    ]


def chosen_on(proxy: Proxy, table: Table | ColumnTable) -> dict[str, int | None]:
    """The tables on which the proxy or a part of it was chosen, and the split's seed if known.

    Columns of `table` that a formula names are not proxies: nothing was chosen there.
    """
    own = dict(proxy.chosen_on)
    if table.space is None:
        return own
    own = own or dict.fromkeys(CHOSEN_ON.get(proxy.name, ()))
    parts = with_table_columns(proxy, table).parts
    return {name: seed for part in parts for name, seed in chosen_on(part, table).items()} | own


class RankedTable:
    """A table that gives the row of each proxy."""

    def __init__(self, table: Table, ranking: Ranking, measurements: Measurements) -> None:
        self.table, self.ranking, self.measurements = table, ranking, measurements
        self.judged = _judge(table, ranking.split_seed, ranking.within)
        self.scores: dict[str, FloatArray] = {}

    def row(self, proxy: Proxy) -> Row:
        table = self.table
        scores = proxy.score(table.space, table.archs, self.measurements)
        self.scores[proxy.name] = scores
        beside = {**self._over_seeds(proxy), **self._exact(proxy, scores)}
        return self.row_of(proxy, scores, beside | {"seconds": self.seconds(proxy, table.archs)})

    def row_of(self, proxy: Proxy, scores: FloatArray, beside: Row) -> Row:
        """The row of a proxy with these scores (n,), and what stands beside them."""
        asked = (ALL,) if self.ranking.is_brief else ()
        judged = {part: of.to_json() for part, of in self.judged.judge(scores, *asked).items()}
        if self.ranking.is_brief:
            judged |= {part: {"rho": rho} for part, rho in self.judged.rhos(scores).items()}
        return _row(proxy, self.table, scores, judged, beside)

    def _exact(self, proxy: Proxy, scores: FloatArray) -> Row:
        """Rho of a formula on whole tensors, and the rho between these scores and the usual."""
        if not self.ranking.exact or not isinstance(proxy, FormulaProxy):
            return {}
        whole = proxy.exact()
        # Whole tensors take much space: networks are run without storing sketches.
        way = whole if whole.needs_sketches else whole.on_networks()
        exact = way.score(self.table.space, self.table.archs, self.measurements)
        both = np.isfinite(exact) & np.isfinite(scores)
        alike = spearman(scores[both], exact[both]) if both.sum() >= LEAST_ARCHS else 0.0
        return {"rho_exact": self.judged.rho(np.where(both, exact, np.nan)), "alike": alike}

    def _over_seeds(self, proxy: Proxy) -> Row:
        """Rho with each seed of the weights and with each batch, where several were requested."""
        row: Row = {}
        for kind, contexts in self.ranking.others().items():
            if len(contexts) > 1:
                rhos = [self._rho(proxy, context) for context in contexts]
                spread = float(np.std(rhos))
                row[f"rho_{kind}"] = rhos
                row |= {f"rho_{kind}_mean": float(np.mean(rhos)), f"rho_{kind}_std": spread}
        return row

    def _rho(self, proxy: Proxy, context: Context) -> float:
        measurements = self.measurements.at(context)
        return self.judged.rho(proxy.score(self.table.space, self.table.archs, measurements))

    def seconds(self, proxy: Proxy, archs: Sequence[Any]) -> float | None:
        """The median cost of an architecture; None where it is unknown (formulas on sketches)."""
        if not proxy.is_measured:
            return None
        if not proxy.measures:
            return 0.0
        records = self.measurements.records(self.table.space, archs, proxy.measures).values()
        return float(np.median(np.sum([[r.seconds for r in of] for of in records], axis=0)))


def rank_columns(
    table: ColumnTable, proxies: Sequence[FormulaProxy] = (), split_seed: int = 0
) -> list[Row]:
    """A row per formula, or per column if none is given, the one with the highest rho first."""
    columns = select(table.columns, list(table.columns), table.name)
    values = Values(columns=columns | as_ranks(columns))
    asked = list(proxies) or [FormulaProxy(name, Formula.of_base(Column(name))) for name in columns]
    judge = _judge(table, split_seed)
    rows = []
    for proxy in asked:
        scores = values.score(proxy.formula)
        if isinstance(scores, Rejected):
            reason = f"cannot be scored on table {table.name}: {scores.reason}"
            raise InputError(f"{proxy.name} {reason}")
        judged = {part: of.to_json() for part, of in judge.judge(scores).items()}
        rows.append(_row(proxy, table, scores, judged, {"seconds": None}))
    return sorted(rows, key=lambda row: -row["rho"])


def _judge(table: Table | ColumnTable, split_seed: int, within: str = DEPTH_WIDTH) -> TableJudge:
    """The judge of the whole table, and of the parts of its split if it has enough rows."""
    parts = split(table, split_seed) if len(table) >= MIN_ROWS else None
    return TableJudge(table, parts, with_test=True, within=within)


def _row(
    proxy: Proxy,
    table: Table | ColumnTable,
    scores: FloatArray,
    judged: dict[str, Row],
    beside: Row,
) -> Row:
    """The row of a proxy with these scores (n,), judged on the whole table and on each part."""
    has_networks = table.space is not None
    printed = figures(table.name, proxy.name) if has_networks else ()
    return {
        "proxy": proxy.name,
        **judged.pop(ALL),
        "missing": int((~np.isfinite(scores)).sum()),
        "in_sample": table.name in chosen_on(proxy, table),
        **judged,
        **beside,
        "direction": proxy.direction,
        "needs": str(proxy.needs) if has_networks else "columns",
        "paper": proxy.paper,
        "definition": proxy.definition,
        "published": [figure._asdict() for figure in printed],
    }


@dataclass(frozen=True, slots=True)
class ProxyColumns:
    """Scores of proxies by name in this context; its seeds are those of the options asked for."""

    context: Context

    def __call__(
        self, table: Table, names: Sequence[str], options: SketchOptions
    ) -> dict[str, FloatArray]:
        """The scores (n,) of the table's architectures under each proxy, computed or cached."""
        proxies = [_proxy_column(name, table) for name in names]
        seeds = replace(self.context, seed=options.seed, batch_seed=options.batch_seed)
        measurements = Measurements(seeds)
        prefetch(table, proxies, measurements)
        return {p.name: p.score(table.space, table.archs, measurements) for p in proxies}


def _proxy_column(name: str, table: Table) -> Proxy:
    proxy = get(name)
    try:
        Column(name)
    except FormulaError as error:
        raise InputError(f"proxy {name} cannot be a term: {error}") from None
    if not proxy.applies_to(table.space):
        raise InputError(f"proxy {name} cannot score space {table.space.name}; leave it out")
    return proxy


@dataclass(frozen=True, eq=False)
class RankingRun(Run):
    """A ranking; `scores` has the score of every architecture by every proxy, None if missing."""

    scores: Mapping[str, Any] | None

    @property
    def table(self) -> Mapping[str, Any]:
        """Name, space, target and digest of the table."""
        table: Mapping[str, Any] = self.request["tables"][0]
        return table

    @property
    def rows(self) -> Sequence[Mapping[str, Any]]:
        """A row per proxy, best first; none without a result."""
        return [] if self.result is None else self.result["rows"]


def ranking_config(table: Table | ColumnTable, options: Mapping[str, Any]) -> RunConfig:
    """The config of a ranking: the table, and the options that its numbers depend on."""
    about = {"name": table.name, "space": space_name(table), "target": table.target}
    return RunConfig(KIND, {"tables": [{**about, "digest": table.digest}], **options})


def result_of(
    table: Table | ColumnTable, split_seed: int, rows: Sequence[Row], scores: Mapping[str, Any]
) -> tuple[Row, Row | None]:
    """The result, and the score sheet if the scores (n,) by proxy are known; JSON values."""
    judged = _judge(table, split_seed)
    result = {"tables": [{"name": table.name, **judged.facts}], "rows": list(rows)}
    best = str(rows[0]["proxy"]) if rows else ""
    if best not in scores:
        return result, None
    labels = judged.parts or {ALL: np.arange(len(table))}
    sheet = column(table, labels, scores[best])
    by_proxy = {name: _values(values) for name, values in scores.items()}
    whole = {**sheet, "score": by_proxy[best], "scores": by_proxy}
    return result, {"formula": best, "tables": {table.name: whole}}


def _values(scores: FloatArray) -> list[float | None]:
    """The scores as JSON values; None where there is none."""
    return [float(score) if np.isfinite(score) else None for score in scores]


def read(config: StoredConfig) -> RankingRun:
    """The ranking with that config."""
    remarks: list[str] = []
    result = read_file(config, RESULT, remarks)
    if result is None:
        remarks.append("The ranking is not finished: run the same command again.")
    return RankingRun(config, result, remarks, read_file(config, SCORES, remarks))
