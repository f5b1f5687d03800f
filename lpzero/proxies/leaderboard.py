"""The cells of a leaderboard: what a proxy is worth on a table, on as many rows as are known.

A cell is the row of `lpzero rank` on the whole table, with how many rows it is about, why others
have no score, and what is left given the best count. It is complete if every row has a score,
partial if some have, missing if none has been computed yet, refused if none can have one.

    table, entries, a deadline  ->  Board.measure  ->  Board.cell
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.judgement.bootstrap import partial_interval
from lpzero.judgement.correlation import partial_spearman
from lpzero.judgement.table import LEAST_ARCHS
from lpzero.proxies.base import Measure, Needs, Proxy
from lpzero.proxies.measurements import NOT_MEASURED, REFUSALS, Context, Measurements
from lpzero.proxies.ranking import RankedTable, Ranking, is_released, must_be_named

if TYPE_CHECKING:
    from spaces.base import Space
    from spaces.tables import Table

COMPLETE, PARTIAL, MISSING, REFUSED = STATES = ("complete", "partial", "missing", "refused")
FITTED = "fitted"  # the family of what is fitted to the table itself
SHOWN = (
    "n", "rho", "rho_ci", "rho_untied", "tau", "tau_ci", "top_precision", "rho_given_params",
    "rho_within", "n_within", "pairs_within", "n_pairs", "flaw", "in_sample", "seconds",
)  # fmt: skip
_NOT_FINITE = "its score is not finite"
_SLICE = 32  # architectures whose sketches are built before the clock is read
_LONGEST = 200  # letters of a reason
Cell = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Entry:
    """A proxy of the board, and the family that it is listed in."""

    proxy: Proxy
    family: str

    @property
    def name(self) -> str:
        """The proxy's name."""
        return self.proxy.name

    @property
    def stage(self) -> int:
        """The place in the order of costs, by what the proxy declares: the cheapest first."""
        proxy, needs = self.proxy, self.proxy.needs
        by_cost = (
            needs != Needs.NOTHING,
            needs != Needs.NOTHING and proxy.is_measured,  # not read from sketches
            bool(needs & Needs.GRADIENT) and proxy.is_measured,
            bool(needs & Needs.SECOND_ORDER),
            is_released(proxy),
            must_be_named(proxy),
        )
        return max((place for place, holds in enumerate(by_cost, 1) if holds), default=0)

    def to_json(self) -> dict[str, Any]:
        """What the board says of it, whatever the table."""
        proxy = self.proxy
        return {
            "proxy": proxy.name,
            "family": self.family,
            "needs": str(proxy.needs),
            "paper": proxy.paper,
            "definition": proxy.definition,
        }

    def key(self, table: Table, context: Context) -> str:
        """What the cell depends on beside the run's own settings, as a digest."""
        measures = sorted(f"{m.name}/{m.version}" for m in self.proxy.measures)
        sketches = [repr(options) for options in self.proxy.all_sketching(context)]
        about = [table.digest, table.space.name, table.space.version, self.name]
        about += [self.proxy.definition, measures, sketches]
        return hashlib.sha256(json.dumps(about).encode()).hexdigest()[:32]


def is_cell(record: Mapping[str, Any], number: int = 0) -> bool:
    """Whether the record is a cell that was computed."""
    texts = (record.get(name) for name in ("key", "table", "proxy"))
    counts = (record.get(name) for name in ("rows", "left", "n"))
    return (
        all(isinstance(text, str) for text in texts)
        and all(type(count) is int for count in counts)
        and record.get("state") in STATES
        and isinstance(record.get("failures"), dict)
    )


class Board:
    """The proxies of a leaderboard on one table."""

    def __init__(self, table: Table, ranking: Ranking, measurements: Measurements) -> None:
        self.table, self.measurements = table, measurements
        self._ranked = RankedTable(table, ranking, measurements)
        self._refused: dict[Measure, str] = {}
        self._failed_sketches: dict[Any, dict[int, str]] = {}

    @property
    def cost(self) -> float:
        """How much its networks take, in operations of a pass."""
        space = self.table.space
        return float(sum(map(space.flops, self.table.archs))) * space.batch_shape[0]

    def measure(self, entries: Sequence[Entry]) -> None:
        """Compute what the proxies need from every network until the context stops it."""
        context, table = self.measurements.context, self.table
        measures = {m.name: m for entry in entries for m in entry.proxy.measures}
        if measures:
            self._refused |= self._measure(list(measures.values()), table.archs)
        for options in dict.fromkeys(o for e in entries for o in e.proxy.all_sketching(context)):
            failed: dict[int, str] = {}
            for start in range(0, len(table), _SLICE):
                archs = table.archs[start : start + _SLICE]
                found = self.measurements.failed_sketches(table.space, archs, options)
                failed |= {start + place: reason for place, reason in found.items()}
            self._failed_sketches[options] = failed

    def _measure(self, measures: Sequence[Measure], archs: Sequence[Any]) -> dict[Measure, str]:
        """Measure all of a network together; the measures that the space's networks refuse."""
        space = self.table.space
        try:
            self.measurements.records(space, archs, measures)
        except REFUSALS as error:
            if len(measures) == 1:
                return {measures[0]: _one_line(error)}
            # One of them ends all: which does, is seen on the smallest network.
            smallest = [min(archs, key=space.flops)] if len(archs) > 1 else archs
            refused = {
                m: why for one in measures for m, why in self._measure([one], smallest).items()
            }
            others = [m for m in measures if m not in refused]
            if len(others) < len(measures):
                return refused | self._measure(others, archs) if others else refused
            return {m: why for one in others for m, why in self._measure([one], archs).items()}
        return {}

    def cell(self, entry: Entry, count: FloatArray) -> Cell:
        """The cell of a proxy, from what is known by now; `count` (n,) scores the best count."""
        table, proxy = self.table, entry.proxy
        head = {"table": table.name, "proxy": entry.name, "rows": len(table)}
        refusal = next(filter(None, map(self._refused.get, proxy.measures)), None)
        if refusal is not None:
            return head | _empty(REFUSED, 0, {refusal: len(table)})
        reasons = self._reasons(proxy)
        known = [row for row in range(len(table)) if row not in reasons]
        scores = np.full(len(table), np.nan)
        # The same list where it is whole: what is known of it is found again.
        archs = table.archs if len(known) == len(table) else [table.archs[row] for row in known]
        if known:
            try:
                scores[known] = proxy.score(table.space, archs, self.measurements)
            except REFUSALS as error:
                return head | _empty(REFUSED, 0, {_one_line(error): len(table)})
        unscored = set(np.flatnonzero(~np.isfinite(scores)).tolist()) - reasons.keys()
        failures = Counter([*reasons.values(), *[_NOT_FINITE] * len(unscored)])
        left = failures.pop(NOT_MEASURED, 0)
        n = int(np.isfinite(scores).sum())
        if n < LEAST_ARCHS:
            return head | _empty(MISSING if left else REFUSED, left, failures)
        seconds = self._ranked.seconds(proxy, archs)
        row = self._ranked.row_of(proxy, scores, {"seconds": seconds})
        state = COMPLETE if n == len(table) else PARTIAL
        about = {"state": state, "left": left, "failures": dict(failures)}
        return head | about | {name: row[name] for name in SHOWN} | self._beyond(scores, count)

    def _reasons(self, proxy: Proxy) -> dict[int, str]:
        """Why a row has no score, by row."""
        table, reasons = self.table, dict[int, str]()
        records = self.measurements.records(table.space, table.archs, proxy.measures)
        for of_measure in records.values():
            for row, record in enumerate(of_measure):
                if not np.isfinite(record.score):
                    reasons.setdefault(row, _one_line(record.failure or _NOT_FINITE))
        for options in proxy.all_sketching(self.measurements.context):
            for row, reason in self._failed_sketches.get(options, {}).items():
                reasons.setdefault(row, _one_line(reason))
        return reasons

    def _beyond(self, scores: FloatArray, count: FloatArray) -> Cell:
        """What is left of rho given the best count, and whether the proxy adds nothing to it."""
        kept = np.isfinite(scores)
        own, targets, given = scores[kept], self.table.targets[kept], count[kept]
        low, high = partial_interval(own, targets, given)
        return {
            "rho_given_count": partial_spearman(own, targets, given),
            "rho_given_count_ci": [low, high],
            "counts_only": not low > 0,
        }


def empty_cell(entry: Entry, table: Table) -> Cell:
    """The cell of a proxy that was not computed: refused if it cannot be, else missing."""
    rows = len(table)
    head = {"table": table.name, "proxy": entry.name, "rows": rows}
    refusal = why_not(entry.proxy, table.space)
    if refusal is not None:
        return head | _empty(REFUSED, 0, {refusal: rows})
    return head | _empty(MISSING, rows, {})


def _empty(state: str, left: int, failures: Mapping[str, int]) -> Cell:
    return {"state": state, "left": left, "failures": dict(failures), "n": 0}


def why_not(proxy: Proxy, space: Space[Any]) -> str | None:
    """Why the proxy cannot score the space's architectures; None if it can."""
    if proxy.applies_to(space):
        return None
    read = proxy.reads.union(*(part.reads for part in proxy.parts))
    absent = ", ".join(sorted(read & space.absent_statistics))
    if absent:
        return f"the networks of {space.name} have no {absent}"
    return f"it cannot score architectures of {space.name}"


def stages(entries: Iterable[Entry]) -> list[list[Entry]]:
    """The entries by cost, the cheapest first; those of a stage share their passes."""
    by_stage: dict[int, list[Entry]] = {}
    for entry in entries:
        by_stage.setdefault(entry.stage, []).append(entry)
    return [by_stage[stage] for stage in sorted(by_stage)]


def _one_line(error: object) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
