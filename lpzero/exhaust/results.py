"""The measures of every formula of an exhaustive run, from the `shards/` of its directory.

Queries read them after the run without recomputing anything: the best formulas by any measure, with
or without certain statistics or operations.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.errors import InputError
from lpzero.exhaust import shards
from lpzero.exhaust.shards import ShardFiles
from lpzero.judgement.measures import MEASURES, RHO, Measures, read_measure
from lpzero.options import LANGUAGE, OneOf, SomeOf, Whole, check, option
from lpzero.runs.formula_run import ONE_SIDED
from primitives.enumeration import Family, families
from primitives.expressions import Combine
from primitives.formula import Formula
from primitives.reductions import PAPER_REDUCTIONS, Reduction
from primitives.registry import BINARIES
from primitives.statistics import STATISTICS


@dataclass(frozen=True, slots=True)
class Query:
    """Which formulas to list, and the measure on the training rows that sorts them."""

    by: str = option(
        RHO,
        "The measure on the training rows that orders the formulas: rho, given-params or within.",
        OneOf("measure", MEASURES, reads=read_measure),
    )
    reduction: Reduction | None = option(
        None,
        "Show only formulas with this reduction over blocks.",
        OneOf("reduction", PAPER_REDUCTIONS, is_optional=True),
        panel=LANGUAGE,
    )
    operation: str | None = option(
        None,
        "Show only formulas with this operation; one-sided has a single branch.",
        OneOf("operation", (*BINARIES, ONE_SIDED), is_optional=True),
        panel=LANGUAGE,
    )
    using: str | None = option(
        None,
        "Show only formulas with this statistic.",
        OneOf("statistic", STATISTICS, is_optional=True),
        panel=LANGUAGE,
    )
    without: Collection[str] = option(
        (),
        "Show only formulas without these statistics, as in GJ.",
        SomeOf("statistic", STATISTICS, separator="", may_be_empty=True),
        panel=LANGUAGE,
    )
    top: int = option(10, "The number of formulas to show.", Whole(1))

    def __post_init__(self) -> None:
        object.__setattr__(self, "by", read_measure(self.by))
        check(self)


@dataclass(frozen=True, slots=True)
class Entry:
    """A formula with the sign that makes the queried measure positive, and its train measures."""

    formula: Formula
    value: float
    measures: Measures


class Results:
    """The measures of every formula of a run."""

    def __init__(self, files: ShardFiles, unaries: int, same_statistic: bool) -> None:
        self.files = files
        self.families = tuple(families(unaries, same_statistic))
        self.shards = shards.cut(self.families)

    def missing(self) -> list[tuple[int, shards.Shard]]:
        """The shards whose files are missing or broken."""
        return [(i, s) for i, s in enumerate(self.shards) if shards.read(self.files, i) is None]

    @cached_property
    def counts(self) -> tuple[int, int, int]:
        """Formulas evaluated, constant, not finite."""
        measured = [self._read(number) for number in range(len(self.shards))]
        return (
            sum(shard.evaluated for shard in measured),
            sum(shard.constant for shard in measured),
            sum(shard.non_finite for shard in measured),
        )

    def measured(self) -> Iterator[tuple[Family, FloatArray]]:
        """The family and the values (measures, reductions, left, right) of every shard."""
        for number, shard in enumerate(self.shards):
            yield self.families[shard.family], self._read(number).values

    def best(self, query: Query) -> list[Entry]:
        """The query's formulas with the largest absolute measure, and all that tie with the last.

        At most 100 times as many as the query asks for; ties are in the order of the space.
        """
        best: list[tuple[float, int, int]] = []
        for number, shard in enumerate(self.shards):
            if _matches(self.families[shard.family], query):
                best += self._of_shard(number, query)
                best = _first(best, query.top)
        return [self._entry(query, number, flat) for _, number, flat in best]

    def _of_shard(self, number: int, query: Query) -> list[tuple[float, int, int]]:
        values = np.abs(self._read(number).values[MEASURES.index(query.by)])
        if query.reduction is not None:
            other = 1 - PAPER_REDUCTIONS.index(query.reduction)
            values[other] = np.nan
        flat = np.where(np.isnan(values), -1.0, values).reshape(-1)
        n_wanted = min(query.top, len(flat))
        border = np.partition(flat, len(flat) - n_wanted)[len(flat) - n_wanted]
        picked = np.flatnonzero(flat >= max(border, 0.0))[: 100 * query.top]
        return [(float(flat[i]), number, int(i)) for i in picked]

    def _entry(self, query: Query, number: int, flat: int) -> Entry:
        shard = self.shards[number]
        values = self._read(number).values
        measures = Measures(*map(float, values.reshape(len(MEASURES), -1)[:, flat]))
        by = MEASURES.index(query.by)
        sign = -1 if measures[by] < 0 else 1
        reduction, left, right = (int(i) for i in np.unravel_index(flat, values.shape[1:]))
        formula = formula_at(
            self.families[shard.family],
            shard.start + left,
            right,
            PAPER_REDUCTIONS[reduction],
            sign,
        )
        signed = measures.negated() if sign < 0 else measures
        return Entry(formula, signed[by], signed)

    def _read(self, number: int) -> shards.MeasuredShard:
        if number not in self._cache:
            shard = shards.read(self.files, number)
            if shard is None:
                raise InputError(f"the run in {self.files.folder} is not finished: start it again")
            self._cache[number] = shard
        return self._cache[number]

    @cached_property
    def _cache(self) -> dict[int, shards.MeasuredShard]:
        return {}


def _first(entries: list[tuple[float, int, int]], top: int) -> list[tuple[float, int, int]]:
    """The best entries, and all that tie with the last; ties are in the order of the space."""
    entries.sort(key=lambda entry: (-entry[0], entry[1], entry[2]))
    if len(entries) <= top:
        return entries
    border = entries[top - 1][0]
    return [entry for entry in entries if entry[0] >= border][: 100 * top]


def formula_at(
    family: Family, left: int, right: int, reduction: Reduction, sign: int = 1
) -> Formula:
    """One formula of a family."""
    first = family.left[left].expression
    if family.operation is None:
        return Formula.of_term(reduction, first, sign)
    pair = Combine(family.operation, first, family.right[right].expression)
    return Formula.of_term(reduction, pair, sign)


def _matches(family: Family, query: Query) -> bool:
    used = {branch[0].statistic for branch in (family.left, family.right) if branch}
    if query.operation is not None and (family.operation or ONE_SIDED) != query.operation:
        return False
    if query.using is not None and query.using not in used:
        return False
    return used.isdisjoint(query.without)
