"""A run's directory: `run.json` says what was asked, `shards/` holds every formula's measures.

`result.json` and `scores.json` are the last answer given from it.

The directory answers questions long after the run: the best of all, within groups, given the
parameters, per statistic, or of those that need no gradient. Nothing is recomputed for them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from lpzero.errors import InputError
from lpzero.exhaust import shards
from lpzero.judgement.measures import MEASURES
from lpzero.judgement.ranks import FloatArray
from lpzero.runs import scoresheet
from lpzero.sketches.store import Store
from primitives.enumeration import Family, families
from primitives.expressions import Combine
from primitives.formula import REDUCTIONS, Formula, Reduction

SCHEMA = 1
RUN, RESULT = "run.json", "result.json"


@dataclass(frozen=True, slots=True)
class Query:
    """Which formulas, best first by which measure.

    by: rho, given-params or within, all on the training rows. without: statistics that must not
    occur. using: a statistic that must. operation: a binary, or "one-sided".
    """

    by: str = "rho"
    reduction: Reduction | None = None
    operation: str | None = None
    using: str | None = None
    without: Collection[str] = ()
    top: int = 10


@dataclass(frozen=True, slots=True)
class Entry:
    """A formula with its sign fitted to the measure asked for, and its measures on train."""

    formula: Formula
    value: float
    measures: dict[str, float]


class Results:
    """The measures of every formula of a run."""

    def __init__(self, folder: Path, unaries: int, same_statistic: bool) -> None:
        self.folder = folder
        self.families = tuple(families(unaries, same_statistic))
        self.shards = shards.cut(self.families)

    def missing(self) -> list[tuple[int, shards.Shard]]:
        """The shards that are not there or not whole."""
        return [(i, b) for i, b in enumerate(self.shards) if shards.read(self.folder, i) is None]

    @cached_property
    def counts(self) -> tuple[int, int, int]:
        """Formulas evaluated, constant, not finite."""
        found = [self._read(number) for number in range(len(self.shards))]
        return (
            sum(block.evaluated for block in found),
            sum(block.constant for block in found),
            sum(block.non_finite for block in found),
        )

    def measured(self) -> Iterator[tuple[Family, FloatArray]]:
        """Every block: its family and its values (measures, reductions, left, right)."""
        for number, block in enumerate(self.shards):
            yield self.families[block.family], self._read(number).values

    def best(self, query: Query) -> list[Entry]:
        """The query's formulas with the largest absolute measure, and all that tie the last.

        At most 100 times as many as asked for; ties are in the order of the space.
        """
        if query.by not in MEASURES:
            known = ", ".join(MEASURES)
            raise InputError(f"formulas are ordered by one of {known}, not {query.by!r}")
        best: list[tuple[float, int, int]] = []
        for number, block in enumerate(self.shards):
            if _matches(self.families[block.family], query):
                best += self._of_shard(number, query)
                best = _first(best, query.top)
        return [self._entry(query, number, flat) for _, number, flat in best]

    def _of_shard(self, number: int, query: Query) -> list[tuple[float, int, int]]:
        values = np.abs(self._read(number).values[MEASURES.index(query.by)])
        if query.reduction is not None:
            other = 1 - REDUCTIONS.index(query.reduction)
            values[other] = np.nan
        flat = np.where(np.isnan(values), -1.0, values).reshape(-1)
        n_wanted = min(query.top, len(flat))
        border = np.partition(flat, len(flat) - n_wanted)[len(flat) - n_wanted]
        picked = np.flatnonzero(flat >= max(border, 0.0))[: 100 * query.top]
        return [(float(flat[i]), number, int(i)) for i in picked]

    def _entry(self, query: Query, number: int, flat: int) -> Entry:
        block = self.shards[number]
        values = self._read(number).values
        found = values.reshape(len(MEASURES), -1)[:, flat]
        measures = {name: float(value) for name, value in zip(MEASURES, found, strict=True)}
        sign = -1 if measures[query.by] < 0 else 1
        reduction, left, right = (int(i) for i in np.unravel_index(flat, values.shape[1:]))
        formula = formula_at(
            self.families[block.family], block.start + left, right, REDUCTIONS[reduction], sign
        )
        signed = {name: sign * value for name, value in measures.items()}
        return Entry(formula, signed[query.by], signed)

    def _read(self, number: int) -> shards.MeasuredShard:
        if number not in self._cache:
            found = shards.read(self.folder, number)
            if found is None:
                raise InputError(f"the run in {self.folder} is not finished: start it again")
            self._cache[number] = found
        return self._cache[number]

    @cached_property
    def _cache(self) -> dict[int, shards.MeasuredShard]:
        return {}


def _first(found: list[tuple[float, int, int]], top: int) -> list[tuple[float, int, int]]:
    """The best, ties with the last of them included; the order of the space breaks ties."""
    found.sort(key=lambda entry: (-entry[0], entry[1], entry[2]))
    if len(found) <= top:
        return found
    border = found[top - 1][0]
    return [entry for entry in found if entry[0] >= border][: 100 * top]


def formula_at(
    family: Family, left: int, right: int, reduction: Reduction, sign: int = 1
) -> Formula:
    """One formula of a family."""
    first = family.left[left].expression
    if family.operation is None:
        return Formula(first, reduction, sign)
    return Formula(
        Combine(family.operation, first, family.right[right].expression), reduction, sign
    )


def _matches(family: Family, query: Query) -> bool:
    used = {branch[0].statistic for branch in (family.left, family.right) if branch}
    if query.operation is not None and (family.operation or "one-sided") != query.operation:
        return False
    if query.using is not None and query.using not in used:
        return False
    return used.isdisjoint(query.without)


def keep(folder: Path, result: dict[str, Any], sheet: dict[str, Any] | None) -> None:
    """Write the last answer into the directory: the result and, if there is one, the scores."""
    for name, value in ((RESULT, result), (scoresheet.FILE, sheet)):
        if value is None:
            (folder / name).unlink(missing_ok=True)
            continue
        text = json.dumps(value, indent=1, allow_nan=False, ensure_ascii=False) + "\n"
        Store(folder).replace(folder / name, text.encode())


def claim(folder: Path, config: dict[str, Any]) -> None:
    """Make the directory this run's, or find that it already is; another run's is an error."""
    path = folder / RUN
    wanted = json.loads(json.dumps({"schema": SCHEMA, **config}))
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        text = json.dumps(wanted, indent=1, sort_keys=True) + "\n"
        Store(folder).replace(path, text.encode())
        return
    except ValueError:
        raise InputError(f"{path} cannot be read: remove the directory or name another") from None
    for key in [*wanted, *found]:
        if wanted.get(key) != found.get(key):
            raise InputError(
                f"{folder} holds another run ({key} is {found.get(key)!r}, this one has"
                f" {wanted.get(key)!r}): name another directory with --out"
            )
