"""Scores of whole families at once: a family is a Cartesian product, scored by array operations.

Scores are summed over blocks; divide by the number of blocks for the mean. Every score is
bit-identical to that of `Values`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lpzero.arrays import FloatArray, IntArray
from lpzero.scores.branch_table import BranchTable
from lpzero.scores.chains import Chain
from lpzero.scores.tabulation import PRODUCTS
from primitives.enumeration import Branch, Family
from primitives.properties import Kind
from primitives.statistics import STATISTICS


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
            one, other = family.left[0], family.right[0]
            if STATISTICS[one.statistic].group != STATISTICS[other.statistic].group:
                return self._product_of_means(left, family.right)
            if Kind.SCALAR in (one.kind, other.kind):
                return self._product_by_tensor(left, family.right)
            which = PRODUCTS.index(family.operation)
            found = self.products[one.statistic, other.statistic][which]
            picked: FloatArray = found[np.ix_(self._rows(left), self._rows(family.right))]
            return picked

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
        {name: found[picked] for name, found in table.counts.items()},
        {name: last(found) for name, found in table.totals.items()},
        {name: last(found) for name, found in table.block_means.items()},
        {name: last(table.means[name]) for name in sorted(paired)},
        {pair: np.ascontiguousarray(found[..., picked]) for pair, found in table.products.items()},
    )


def _tabulated(chain: Chain, rows: dict[tuple[str, Chain], int], statistic: str) -> Chain:
    """The chain as the table has it: a final `mean` is dropped, since the table stores means."""
    while (statistic, chain) not in rows and chain[-1:] == ("mean",):
        chain = chain[:-1]
    return chain
