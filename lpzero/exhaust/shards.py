"""The space divided into shards of formulas, each measured by a worker.

The shards do not depend on the number of workers or the memory, so a run can be resumed with other
values of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lpzero.arrays import BoolArray, FloatArray
from lpzero.exhaust.families import FamilyScorer
from lpzero.exhaust.shard_files import ShardFiles
from lpzero.judgement.measures import MEASURES, RankMeasures
from primitives.enumeration import Family
from primitives.reductions import PAPER_REDUCTIONS

FORMULAS = 1 << 14  # per shard and reduction
# Arrays of score vectors in a worker at the same time: the shard, a reduction of it, the ranks.
_COPIES = 3
_MOST_BYTES = 24 << 20  # of them: what the allocator does not keep costs page faults


@dataclass(frozen=True, slots=True)
class Shard:
    """The left branches from start to stop of one family, each with all its right branches."""

    family: int
    start: int
    stop: int


def cut(families: Sequence[Family]) -> list[Shard]:
    """The shards of the space, in the order of the families."""
    shards = []
    for index, family in enumerate(families):
        step = max(1, FORMULAS // max(1, len(family.right)))
        for start in range(0, len(family.left), step):
            shards.append(Shard(index, start, min(start + step, len(family.left))))
    return shards


def members(family: Family, shard: Shard) -> BoolArray:
    """Which (left, right) of the shard are formulas; an unordered family has each pair once."""
    shape = shard.stop - shard.start, max(1, len(family.right))
    if not family.unordered:
        return np.ones(shape, dtype=np.bool_)
    first = 1 if family.operation == "sub" else 0
    left = np.arange(shard.start, shard.stop)[:, np.newaxis]
    return np.asarray(np.arange(shape[1]) >= left + first)


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredShard:
    """A measured shard: values (measures, reductions, left, right), NaN where undefined."""

    values: FloatArray
    evaluated: int
    constant: int
    non_finite: int


@dataclass(frozen=True, eq=False)
class ShardTask:
    """Runs in a worker: measures a shard and writes it; `memory` in bytes bounds its arrays."""

    scorer: FamilyScorer
    measures: RankMeasures
    families: tuple[Family, ...]
    files: ShardFiles
    memory: int

    def __call__(self, task: tuple[int, Shard]) -> None:
        number, shard = task
        write(self.files, number, self.measure(shard))

    def measure(self, shard: Shard) -> MeasuredShard:
        """The shard's measures, computed for a few left branches at a time.

        A family that reads a statistic which the networks do not have is not evaluated.
        """
        family = self.families[shard.family]
        width = max(1, len(family.right))
        shape = len(MEASURES), len(PAPER_REDUCTIONS), shard.stop - shard.start, width
        values = np.full(shape, np.nan)
        if self.scorer.reads_absent(family):
            return MeasuredShard(values, 0, 0, 0)
        is_formula = members(family, shard)
        counts = np.zeros(2, dtype=np.int64)
        step = max(1, min(self.memory, _MOST_BYTES) // (_COPIES * width * self.scorer.n_archs * 8))
        for start in range(shard.start, shard.stop, step):
            stop = min(start + step, shard.stop)
            total = self.scorer.scores(family, start, stop)
            rows = slice(start - shard.start, stop - shard.start)
            for index, reduction in enumerate(PAPER_REDUCTIONS):
                picked = total[is_formula[rows]]
                if reduction == "mean":
                    picked /= self.scorer.n_blocks
                found = self.measures.measure(picked)
                values[:, index, rows][:, is_formula[rows]] = found.values
                counts += [found.constant.sum(), found.non_finite.sum()]
        evaluated = int(is_formula.sum()) * len(PAPER_REDUCTIONS)
        return MeasuredShard(values, evaluated, int(counts[0]), int(counts[1]))


def write(files: ShardFiles, number: int, counted: MeasuredShard) -> None:
    """Write the shard atomically."""
    counts = np.array([counted.evaluated, counted.constant, counted.non_finite])
    files.write(number, {"values": counted.values, "counts": counts})


def read(files: ShardFiles, number: int) -> MeasuredShard | None:
    """The shard; None if its file is missing or broken."""
    found = files.read(number)
    if found is None:
        return None
    return MeasuredShard(found["values"], *(int(count) for count in found["counts"]))
