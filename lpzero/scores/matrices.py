"""The part of an expression that needs whole matrices, computed on pieces of the sketches.

A piece passes through the whole expression while it is in the processor's cache. The result for a
tensor depends on that tensor alone, so pieces can be distributed over threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from lpzero.arrays import ByteCache, FloatArray
from lpzero.scores import stacks
from lpzero.scores.branch_table import BranchTable
from lpzero.scores.stacks import (
    Tensor,
    aligned_tensors,
    combine,
    finite,
    gather,
    groups,
    mean_of_product,
    scalars,
)
from lpzero.sketches.builder import Sketches
from lpzero.sketches.sketch import Sketch
from primitives.expressions import Apply, Combine, Expression, Leaf, children
from primitives.facts import Facts, facts
from primitives.properties import Kind
from primitives.registry import get_binary, get_unary
from primitives.tensors import Matrix

if TYPE_CHECKING:
    from lpzero.scores.values import Values

_MOST_SEEN = 100_000
_ELEMENTS = 1 << 14  # of one statistic of a piece


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Tensors of one shape, small enough for a core's cache: a stack in float32 per statistic.

    places: (architecture, block, tensor) of each (3, k).
    """

    stacks: dict[str, Matrix]
    places: npt.NDArray[np.intp]

    @classmethod
    def of(cls, tensors: Sequence[Sequence[Tensor]]) -> Piece:
        """The piece of aligned tensors."""
        stacks = {}
        for alike in zip(*tensors, strict=True):
            values = np.stack([tensor.matrix.values for tensor in alike])
            stacks[alike[0].statistic] = Matrix(values, alike[0].matrix.true_columns)
        places = [(first.row, first.position, first.index) for first, *_ in tensors]
        return cls(stacks, np.array(places, dtype=np.intp).T)

    def matrix(self, statistic: str) -> Matrix:
        """The statistic's stack in float64."""
        stack = self.stacks[statistic]
        return Matrix(stack.values.astype(np.float64), stack.true_columns)


class Matrices:
    """Means of matrix expressions; matrices needed twice are cached, up to `limit` bytes.

    What is one number per tensor or per block comes from `owner`.
    """

    def __init__(self, owner: Values, table: BranchTable, limit: int, jobs: int = 1) -> None:
        self.owner, self.table, self.jobs = owner, table, jobs
        self._pieces: dict[str, list[Piece]] = {}
        self._cache: ByteCache[list[Matrix]] = ByteCache(limit)
        self._seen: dict[Expression, None] = {}

    def expect(self, nodes: Iterable[Expression]) -> None:
        """Cache these expressions when they are computed, because they are needed again."""
        self._seen.update(dict.fromkeys(nodes))

    def means(self, expression: Expression) -> FloatArray:
        """The mean of each tensor (A, B, T)."""
        group = facts(expression).group
        assert group is not None
        pieces = self._of_group(group)
        job = _Pass(self, expression)
        if self.jobs > 1:
            with ThreadPoolExecutor(self.jobs) as pool:
                results = list(pool.map(job.means, range(len(pieces)), pieces))
        else:
            results = [job.means(i, piece) for i, piece in enumerate(pieces)]
        means = np.zeros(self.owner.has_tensor(group).shape)
        for piece, result in zip(pieces, results, strict=True):
            means[tuple(piece.places)] = result
        self._store(job)
        return means

    def _of_group(self, group: str) -> list[Piece]:
        """The group's pieces, gathered when they are first needed."""
        if group not in self._pieces:
            tensors = (
                [tensor.copied() for tensor in tensors]
                for row, sketch in enumerate(self._chosen())
                for tensors in aligned_tensors(row, sketch, groups()[group])
            )
            gathered = gather(tensors, _ELEMENTS, lambda tensor: tensor.matrix.true_columns)
            self._pieces[group] = [Piece.of(together) for together in gathered]
        return self._pieces[group]

    def _chosen(self) -> Iterable[Sketch]:
        """The sketches of the rows, one after another."""
        sketches, rows = self.table.sketches, self.table.rows
        if isinstance(sketches, Sketches):
            return sketches.in_turn(rows)
        return (sketches[row] for row in rows)

    def _store(self, job: _Pass) -> None:
        for node, made in job.made.items():
            of_pieces = [made[i] for i in sorted(made)]
            self._cache.put(node, of_pieces, sum(matrix.values.nbytes for matrix in of_pieces))
        if len(self._seen) > _MOST_SEEN:
            self._seen.clear()
        self._seen.update(dict.fromkeys(job.inner))

    def wanted(self, node: Expression) -> bool:
        """Whether the node was needed before and is not cached yet."""
        return node in self._seen and node not in self._cache

    def cached(self, node: Expression) -> list[Matrix] | None:
        """The node's cached matrices, a stack per piece; None if it is not cached."""
        return self._cache.get(node)


class _Pass:
    """The computation of one expression on every piece.

    Values per tensor or block are fetched first, in one thread.
    """

    def __init__(self, matrices: Matrices, expression: Expression) -> None:
        self.expression = expression
        self.inner: list[Expression] = []
        self.scalars: dict[Expression, FloatArray] = {}
        self.ready: dict[Expression, list[Matrix]] = {}
        self.made: dict[Expression, dict[int, Matrix]] = {}
        for child in children(expression):
            self._prepare(matrices, child)

    def _prepare(self, matrices: Matrices, node: Expression) -> None:
        if facts(node).group is None:
            self.scalars[node] = matrices.owner.block_means(node)
        elif facts(node).kind is Kind.SCALAR:
            self.scalars[node] = matrices.owner.tensor_means(node)
        elif not isinstance(node, Leaf):
            cached = matrices.cached(node)
            if cached is not None:
                self.ready[node] = cached
                return
            self.inner.append(node)
            if matrices.wanted(node):
                self.made[node] = {}
            for child in children(node):
                self._prepare(matrices, child)

    def means(self, index: int, piece: Piece) -> FloatArray:
        """The means (k,) of the expression on a piece."""
        with np.errstate(all="ignore"):
            node = self.expression
            if isinstance(node, Combine) and not _scalar_involved(node):
                primitive = get_binary(node.operation)
                if primitive.contracts:
                    left, right = (self._at(side, index, piece) for side in children(node))
                    return mean_of_product(primitive, left, right)
            return finite(stacks.means(self._compute(node, index, piece).values))

    def _at(self, node: Expression, index: int, piece: Piece) -> Matrix:
        if node in self.scalars:
            values = self.scalars[node]
            return scalars(values[tuple(piece.places[: values.ndim])])
        if node in self.ready:
            return self.ready[node][index]
        made = self.made.get(node)
        if made is not None and index in made:
            return made[index]
        matrix = self._compute(node, index, piece)
        if made is not None:
            made[index] = matrix
        return matrix

    def _compute(self, node: Expression, index: int, piece: Piece) -> Matrix:
        if isinstance(node, Leaf):
            return piece.matrix(node.statistic)
        if isinstance(node, Combine):
            left, right = self._at(node.left, index, piece), self._at(node.right, index, piece)
            return combine(get_binary(node.operation), left, right, _scalar_involved(node))
        assert isinstance(node, Apply)
        operand = self._at(node.operand, index, piece)
        primitive = get_unary(node.operation)
        values = finite(stacks.apply(primitive, operand.values, operand.column_scale))
        return Matrix(values, 1 if stacks.gives_scalar(primitive) else operand.true_columns)


def _scalar_involved(node: Combine) -> bool:
    sides: tuple[Facts, Facts] = facts(node.left), facts(node.right)
    return Kind.SCALAR in (sides[0].kind, sides[1].kind)
