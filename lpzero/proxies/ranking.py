"""How well proxies rank a table: for each proxy, everything that a result must report.

In: a table and proxies. Out: a row per proxy, best first: rho and tau with intervals on the whole
table and on its parts, rho given the parameters and within equal depth and width, the precision of
the best tenth, the cost of an architecture, rho over other seeds, and published numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.errors import InputError
from lpzero.judgement.correlation import spearman
from lpzero.judgement.table import ALL, LEAST_ARCHS, TableJudge
from lpzero.proxies.base import Proxy
from lpzero.proxies.formula import FormulaProxy
from lpzero.proxies.measurements import Context, Measurements
from lpzero.proxies.published import CHOSEN_ON, figures
from lpzero.proxies.registry import get, names
from lpzero.scores.columns import RANK_OF, select
from spaces.base import Space
from spaces.tables import split
from spaces.tables.splits import MIN_ROWS

if TYPE_CHECKING:
    from spaces.tables import Table

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Ranking:
    """How proxies are compared: the first seeds, how many more of each kind, and the split.

    `is_brief`: of the parts of the split rho alone, as a terminal shows it.
    """

    context: Context = field(default_factory=Context)
    seeds: int = 1
    batches: int = 1
    split_seed: int = 0
    exact: bool = False  # also score formulas on whole tensors, and compare
    is_brief: bool = False

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
    judged = _RankedTable(table, ranking, measurements)
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


def chosen_on(proxy: Proxy) -> dict[str, int | None]:
    """The tables on which the proxy or a part of it was chosen, and the split's seed if known."""
    by_parts = {name: seed for part in proxy.parts for name, seed in chosen_on(part).items()}
    return by_parts | (dict(proxy.chosen_on) or dict.fromkeys(CHOSEN_ON.get(proxy.name, ())))


class _RankedTable:
    """A table that gives the row of each proxy."""

    def __init__(self, table: Table, ranking: Ranking, measurements: Measurements) -> None:
        self.table, self.ranking, self.measurements = table, ranking, measurements
        parts = split(table, ranking.split_seed) if len(table) >= MIN_ROWS else None
        self.judged = TableJudge(table, parts, with_test=True)
        self.scores: dict[str, FloatArray] = {}

    def row(self, proxy: Proxy) -> Row:
        table = self.table
        scores = proxy.score(table.space, table.archs, self.measurements)
        self.scores[proxy.name] = scores
        found = self._judged(scores)
        return {
            "proxy": proxy.name,
            **found.pop(ALL),
            "missing": int((~np.isfinite(scores)).sum()),
            "in_sample": table.name in chosen_on(proxy),
            **found,
            **self._over_seeds(proxy),
            **self._exact(proxy, scores),
            "seconds": self.seconds(proxy),
            "direction": proxy.direction,
            "needs": str(proxy.needs),
            "paper": proxy.paper,
            "definition": proxy.definition,
            "published": [figure._asdict() for figure in figures(table.name, proxy.name)],
        }

    def _judged(self, scores: FloatArray) -> dict[str, Row]:
        """The judgement on the whole table and on each part."""
        asked = (ALL,) if self.ranking.is_brief else ()
        found = {part: one.to_json() for part, one in self.judged.judge(scores, *asked).items()}
        if self.ranking.is_brief:
            found |= {part: {"rho": rho} for part, rho in self.judged.rhos(scores).items()}
        return found

    def _exact(self, proxy: Proxy, scores: FloatArray) -> Row:
        """Rho of a formula on whole tensors, and the rho between these scores and the usual."""
        if not self.ranking.exact or not isinstance(proxy, FormulaProxy):
            return {}
        whole = proxy.exact()
        # Whole tensors take much space: networks are run without storing sketches.
        way = whole if whole.needs_sketches else whole.on_networks()
        found = way.score(self.table.space, self.table.archs, self.measurements)
        both = np.isfinite(found) & np.isfinite(scores)
        alike = spearman(scores[both], found[both]) if both.sum() >= LEAST_ARCHS else 0.0
        return {"rho_exact": self.judged.rho(np.where(both, found, np.nan)), "alike": alike}

    def _over_seeds(self, proxy: Proxy) -> Row:
        """Rho with each seed of the weights and with each batch, where several were requested."""
        found: Row = {}
        for kind, contexts in self.ranking.others().items():
            if len(contexts) > 1:
                rhos = [self._rho(proxy, context) for context in contexts]
                spread = float(np.std(rhos))
                found[f"rho_{kind}"] = rhos
                found |= {f"rho_{kind}_mean": float(np.mean(rhos)), f"rho_{kind}_std": spread}
        return found

    def _rho(self, proxy: Proxy, context: Context) -> float:
        measurements = self.measurements.at(context)
        return self.judged.rho(proxy.score(self.table.space, self.table.archs, measurements))

    def seconds(self, proxy: Proxy) -> float | None:
        """The median cost of an architecture; None where it is unknown (formulas on sketches)."""
        if not proxy.is_measured:
            return None
        if not proxy.measures:
            return 0.0
        table = self.table
        found = self.measurements.records(table.space, table.archs, proxy.measures)
        return float(np.median(np.sum([[r.seconds for r in rs] for rs in found.values()], axis=0)))
