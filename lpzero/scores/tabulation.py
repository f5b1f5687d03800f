"""One sketch -> means of every branch per tensor, and products of aligned chain pairs.

A formula ends in a mean. If the rows of F and G are all chains of a tensor, mean(f(X) * g(Y)) for
all pairs is F·Gᵀ / N, and mean(f(X)·g(Y)) is colmean(F)·rowmean(G). Everything is float64, because
chains range from 1e-18 to 1e43 and their products cancel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from lpzero.arrays import FloatArray
from lpzero.scores import stacks
from lpzero.scores.chains import ChainSet, Node, Pair
from lpzero.scores.pieces import Piece, gather, groups
from lpzero.sketches.sketch import Sketch
from primitives.registry import get_unary
from primitives.statistics import STATISTICS
from primitives.tensors import Matrix, kept_columns

PRODUCTS = ("mul", "matmul")


@dataclass(frozen=True, slots=True, eq=False)
class Tabulated:
    """One architecture's part of a branch table.

    counts: tensors per block (B,) of each statistic. means: (chains, B, T), zero beyond a block's
    tensors, NaN where a chain overflowed. products: (mul and matmul, left chains,
    right chains) of each pair, the mean over each block's tensors summed over blocks.
    ends: (chains,) of each (end, statistic) the sketch has, the mean over the end's tensors; sizes:
    as the sketch states them.
    """

    counts: dict[str, tuple[int, ...]]
    means: dict[str, FloatArray]
    products: dict[Pair, FloatArray]
    ends: dict[tuple[str, str], FloatArray] = field(default_factory=dict)
    sizes: Mapping[str, Any] | None = None


def tabulate(sketch: Sketch, chains: ChainSet) -> Tabulated:
    """The sketch's branch table; single-threaded, so that the order of sums is fixed."""
    counts = {
        name: tuple(len(sketch.shapes(b, name)) for b in range(sketch.n_blocks))
        for name in chains.chains
    }
    means = {
        name: np.zeros((len(rows), sketch.n_blocks, max(counts[name])))
        for name, rows in chains.chains.items()
    }
    products = {
        pair: np.zeros((2, chains.n_matrices[pair[0]], chains.n_matrices[pair[1]]))
        for pair in chains.pairs
    }
    with threadpool_limits(1, "blas"), np.errstate(all="ignore"):
        for statistics in groups().values():
            pairs = [pair for pair in chains.pairs if pair[0] in statistics]
            paired = {name for pair in pairs for name in pair}
            buffers = _Buffers()
            for piece in gather([sketch], statistics):
                rows = {}
                for name in statistics:
                    table = buffers.get(name, chains, piece) if name in paired else None
                    _tabulate_piece(piece, name, chains, means[name], table)
                    if table is not None:
                        rows[name] = table
                shares = 1.0 / np.array([counts[statistics[0]][b] for b in piece.places[1]])
                for pair in pairs:
                    products[pair] += _products(piece, pair, rows, shares)
        ends = {
            (end, name): _end_means(sketch.end_matrices(end, name), name, chains)
            for end in sketch.ends
            for name in chains.chains
            if STATISTICS[name].at_ends and sketch.end_matrices(end, name)
        }
    return Tabulated(counts, means, products, ends, sketch.sizes)


def _end_means(matrices: Sequence[Matrix], name: str, chains: ChainSet) -> FloatArray:
    """The mean of each chain (chains,) over an end's tensors, NaN where a chain left float64."""
    total = np.zeros(len(chains.chains[name]))

    def visit(node: Node, values: FloatArray, stretch: float) -> None:
        average = float(stacks.means(values)[0])
        if not np.isfinite(average) and not np.isfinite(values).all():
            average = np.nan
        if node.row is not None:
            total[node.row] += average
        for operation, child in node.children.items():
            primitive = get_unary(operation)
            result = stacks.apply(primitive, values, stretch, chains.softmax_axis)
            result = result if np.isfinite(average) else np.full(result.shape, np.nan)
            visit(child, result, 1.0 if stacks.gives_scalar(primitive) else stretch)

    for matrix in matrices:
        stack = matrix.values[np.newaxis]
        visit(chains.trees[name], stack, matrix.true_columns / stack.shape[2])
    return total / len(matrices)


class _Buffers:
    """Reusable arrays for the chains of a piece."""

    def __init__(self) -> None:
        self._arrays: dict[str, FloatArray] = {}

    def get(self, name: str, chains: ChainSet, piece: Piece) -> FloatArray:
        """An uninitialised array (matrix chains, k, rows, kept)."""
        shape = chains.n_matrices[name], *piece.stacks[name].shape
        size = int(np.prod(shape))
        if name not in self._arrays or self._arrays[name].size < size:
            self._arrays[name] = np.empty(size)
        return self._arrays[name][:size].reshape(shape)


def _tabulate_piece(
    piece: Piece, name: str, chains: ChainSet, means: FloatArray, table: FloatArray | None
) -> None:
    """Fill the means of a piece's tensors and, if given, the table of its chains."""
    _, block, tensor = piece.places

    def visit(node: Node, values: FloatArray, stretch: float, zero_or_nan: FloatArray) -> None:
        # NaN marks tensors that overflowed earlier in the chain. A mean is finite only if every
        # element is: a cheap check of all of them.
        average = stacks.means(values) + zero_or_nan
        if not np.isfinite(average).all():
            is_finite = np.isfinite(values).all(axis=(1, 2))
            zero_or_nan = np.where(is_finite, zero_or_nan, np.nan)
        if node.row is not None:
            means[node.row, block, tensor] = average
        if node.matrix_row is not None and table is not None:
            table[node.matrix_row] = values
            if np.isnan(zero_or_nan).any():
                table[node.matrix_row, np.isnan(zero_or_nan)] = np.nan
        for operation, child in node.children.items():
            primitive = get_unary(operation)
            result = stacks.apply(primitive, values, stretch, chains.softmax_axis)
            # A scalar already represents all columns, so it is not rescaled.
            left = 1.0 if stacks.gives_scalar(primitive) else stretch
            visit(child, result, left, zero_or_nan)

    visit(chains.trees[name], piece.values(name), piece.stretch(name), np.zeros(len(block)))


def _products(
    piece: Piece, pair: Pair, rows: dict[str, FloatArray], shares: FloatArray
) -> FloatArray:
    """mul and matmul (2, left chains, right chains): each tensor's mean times its share, summed."""
    left, right = rows[pair[0]], rows[pair[1]]
    weights = shares / (left.shape[2] * left.shape[3])
    if (
        left.shape[1:] == right.shape[1:]
        and piece.true_columns[pair[0]] == piece.true_columns[pair[1]]
    ):
        scaled = left * weights[:, np.newaxis, np.newaxis]
        product = scaled.reshape(len(left), -1) @ right.reshape(len(right), -1).T
    else:
        product = _of_means(left, right, shares)
    return np.stack([product, _contraction(piece, pair, left, right, shares)])


def _contraction(
    piece: Piece, pair: Pair, left: FloatArray, right: FloatArray, shares: FloatArray
) -> FloatArray:
    """The means of all matrix products, as `primitives.naive` pairs rows and columns."""
    inner, width = piece.true_columns[pair[0]], piece.true_columns[pair[1]]
    kept = left.shape[3]
    if inner == right.shape[2]:
        rows = right.mean(axis=3)
        others = rows if kept == right.shape[2] else rows[:, :, kept_columns(inner, kept)]
    elif inner == width and kept == right.shape[3]:
        others = right.mean(axis=2)
    else:
        return _of_means(left, right, shares)
    columns = left.mean(axis=2) * (shares * (inner / kept))[:, np.newaxis]
    product: FloatArray = columns.reshape(len(left), -1) @ others.reshape(len(right), -1).T
    return product


def _of_means(left: FloatArray, right: FloatArray, shares: FloatArray) -> FloatArray:
    product: FloatArray = (left.mean(axis=(2, 3)) * shares) @ right.mean(axis=(2, 3)).T
    return product
