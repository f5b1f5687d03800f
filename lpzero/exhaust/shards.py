"""The space divided into shards of formulas, each measured by a worker and stored.

The shards do not depend on the number of workers or the memory, so a run can be resumed with other
values of both. On disk they are NumPy archives, each sealed with its run and number. A family of
formulas is a Cartesian product, scored at once by array operations: scores are summed over blocks
(divided by their number for the mean) and bit-identical to those of `Values`.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from lpzero.arrays import BoolArray, FloatArray, IntArray
from lpzero.files import SEAL, array_seal, write_bytes
from lpzero.judgement.measures import MEASURES, RankMeasures
from lpzero.runs.layout import SHARDS, place
from lpzero.scores.branch_table import BranchTable
from lpzero.scores.chains import Chain
from lpzero.scores.tabulation import PRODUCTS
from primitives.enumeration import Branch, Family
from primitives.properties import Kind
from primitives.reductions import PAPER_REDUCTIONS
from primitives.statistics import STATISTICS
from spaces.untrusted import check_unpacked, read_regular

logger = logging.getLogger(__name__)
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
                measured = self.measures.measure(picked)
                values[:, index, rows][:, is_formula[rows]] = measured.values
                counts += [measured.constant.sum(), measured.non_finite.sum()]
        evaluated = int(is_formula.sum()) * len(PAPER_REDUCTIONS)
        return MeasuredShard(values, evaluated, int(counts[0]), int(counts[1]))


def write(files: ShardFiles, number: int, counted: MeasuredShard) -> None:
    """Write the shard atomically."""
    counts = np.array([counted.evaluated, counted.constant, counted.non_finite])
    files.write(number, {"values": counted.values, "counts": counts})


def read(files: ShardFiles, number: int) -> MeasuredShard | None:
    """The shard; None if its file is missing or broken."""
    arrays = files.read(number)
    if arrays is None:
        return None
    return MeasuredShard(arrays["values"], *(int(count) for count in arrays["counts"]))


Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class ShardFiles:
    """The files in `shards/` of a run's directory; `run` is the hash of its config."""

    folder: Path
    run: str

    def path(self, number: int) -> Path:
        """The path of the shard with that number."""
        return self.folder / SHARDS / f"{number:05d}.npz"

    def write(self, number: int, arrays: Arrays) -> None:
        """Write the shard atomically; what a power failure leaves of it is measured again."""
        buffer = io.BytesIO()
        stored = {**arrays, SEAL: array_seal(self._place(number), arrays)}
        np.savez(buffer, **stored)  # type: ignore[arg-type]  # names, not options
        write_bytes(self.path(number), buffer.getvalue(), is_flushed=False)

    def read(self, number: int) -> dict[str, NDArray[Any]] | None:
        """The shard's arrays; None if there is no file, or with a note if it is not as written."""
        path = self.path(number)
        try:
            data = io.BytesIO(read_regular(path, follow_links=False))
            check_unpacked(data, path)
            with np.load(data, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
        except FileNotFoundError:
            return None
        # A broken archive can make zipfile and NumPy raise almost anything.
        except (OSError, ValueError, LookupError, EOFError, BadZipFile, MemoryError, TypeError,
                RuntimeError, SyntaxError) as error:  # fmt: skip
            logger.warning("%s cannot be read (%s); it is ignored", path, type(error).__name__)
            return None
        seal = arrays.pop(SEAL, None)
        if seal is None or not np.array_equal(seal, array_seal(self._place(number), arrays)):
            logger.warning("%s was changed or belongs elsewhere; it is ignored", path)
            return None
        return arrays

    def _place(self, number: int) -> str:
        return place(self.run, f"{SHARDS}/{number}")


@dataclass(frozen=True, eq=False)
class FamilyScorer:
    """A branch table laid out for families: architectures are the last, contiguous axis.

    totals: (chains, A); blocks: (chains, B, A); tensors: (chains, B, T, A), only of statistics
    that are aligned with another; products as in the branch table.
    """

    rows: dict[tuple[str, Chain], int]
    n_blocks: IntArray
    counts: dict[str, IntArray]
    totals: dict[str, FloatArray]
    blocks: dict[str, FloatArray]
    tensors: dict[str, FloatArray]
    products: dict[tuple[str, str], FloatArray]

    def reads_absent(self, family: Family) -> bool:
        """Whether the family reads a statistic that the networks do not have."""
        return any(side[0].statistic not in self.totals for side in family.sides)

    @property
    def n_archs(self) -> int:
        return len(self.n_blocks)

    @property
    def nbytes(self) -> int:
        """The memory of the arrays in bytes."""
        parts = (self.totals, self.blocks, self.tensors, self.products)
        return sum(array.nbytes for part in parts for array in part.values())

    def scores(self, family: Family, start: int, stop: int) -> FloatArray:
        """The family's left branches from start to stop: (left, right, A), summed over blocks.

        One-sided families have one column. NaN marks overflow.
        """
        left = family.left[start:stop]
        with np.errstate(all="ignore"):
            if family.operation is None:
                return self._total(left)[:, np.newaxis]
            if family.operation in ("add", "sub"):
                a, b = self._total(left)[:, np.newaxis], self._total(family.right)
                return a + b if family.operation == "add" else a - b
            first, second = family.left[0], family.right[0]
            if STATISTICS[first.statistic].group != STATISTICS[second.statistic].group:
                return self._product_of_means(left, family.right)
            if Kind.SCALAR in (first.kind, second.kind):
                return self._product_by_tensor(left, family.right)
            products = self.products[first.statistic, second.statistic]
            of_operation = products[PRODUCTS.index(family.operation)]
            return np.asarray(of_operation[np.ix_(self._rows(left), self._rows(family.right))])

    def _rows(self, branches: Sequence[Branch]) -> list[int]:
        return [
            self.rows[b.statistic, _tabulated(b.chain, self.rows, b.statistic)] for b in branches
        ]

    def _total(self, branches: Sequence[Branch]) -> FloatArray:
        return self.totals[branches[0].statistic][self._rows(branches)]

    def _product_of_means(self, left: Sequence[Branch], right: Sequence[Branch]) -> FloatArray:
        a = self.blocks[left[0].statistic][self._rows(left)][:, np.newaxis]
        b = self.blocks[right[0].statistic][self._rows(right)][np.newaxis]
        total: FloatArray = a[:, :, 0] * b[:, :, 0]
        for block in range(1, a.shape[2]):
            total += a[:, :, block] * b[:, :, block]
        return total

    def _product_by_tensor(self, left: Sequence[Branch], right: Sequence[Branch]) -> FloatArray:
        a = self.tensors[left[0].statistic][self._rows(left)][:, np.newaxis]
        b = self.tensors[right[0].statistic][self._rows(right)][np.newaxis]
        counts = np.maximum(self.counts[left[0].statistic], 1)  # (A, B)
        total: FloatArray = np.zeros((len(left), len(right), self.n_archs))
        for block in range(a.shape[2]):
            inside = a[:, :, block, 0] * b[:, :, block, 0]
            for tensor in range(1, a.shape[3]):
                inside += a[:, :, block, tensor] * b[:, :, block, tensor]
            total += inside / counts[:, block]
        return total


def family_scorer(table: BranchTable, archs: IntArray | None = None) -> FamilyScorer:
    """The table of these architectures (all if None), laid out for families."""
    picked = np.arange(table.n_archs) if archs is None else archs
    paired = {name for pair in table.products for name in pair}

    def last(array: FloatArray) -> FloatArray:
        """(chains, A, ...) -> (chains, ..., picked A)"""
        return np.ascontiguousarray(np.moveaxis(array[:, picked], 1, -1))

    return FamilyScorer(
        table.chains.rows,
        table.n_blocks[picked],
        {name: counts[picked] for name, counts in table.counts.items()},
        {name: last(totals) for name, totals in table.totals.items()},
        {name: last(means) for name, means in table.block_means.items()},
        {name: last(table.means[name]) for name in sorted(paired)},
        {pair: np.ascontiguousarray(of[..., picked]) for pair, of in table.products.items()},
    )


def _tabulated(chain: Chain, rows: dict[tuple[str, Chain], int], statistic: str) -> Chain:
    """The chain as the table has it: a final `mean` is dropped, since the table stores means."""
    while (statistic, chain) not in rows and chain[-1:] == ("mean",):
        chain = chain[:-1]
    return chain
