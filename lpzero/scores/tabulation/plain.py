"""The branch table of one sketch in the obvious way: the reference of the fast tabulator.

Every chain of every tensor is computed by the bodies of its primitives, one after another, and the
products of all pairs are sums over the elements of two matrices.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.scores.chains import ChainSet, Node
from lpzero.scores.tabulation.tabulator import Tabulated
from lpzero.sketches.sketch import Sketch, end_statistics
from primitives.properties import Gives
from primitives.registry import get_unary
from primitives.tensors import Matrix, kept_columns


def tabulate_plainly(sketch: Sketch, chains: ChainSet) -> Tabulated:
    """The sketch's branch table; its numbers may differ from `tabulate`'s in the last digits."""
    return _tabulate(sketch, chains, lambda matrix: matrix)


def sizes_of_sums(sketch: Sketch, chains: ChainSet) -> Tabulated:
    """The table with absolute values in place of what is summed: rounding is relative to it.

    `tabulate` sums products of matrices less their means, hence the means of absolute values too.
    """

    def size(matrix: Matrix) -> Matrix:
        absolute = np.abs(matrix.values)
        return Matrix(absolute + absolute.mean(), matrix.true_columns)

    return _tabulate(sketch, chains, size)


def _tabulate(sketch: Sketch, chains: ChainSet, of: Callable[[Matrix], Matrix]) -> Tabulated:
    blocks = range(sketch.n_blocks)
    counts = {name: tuple(len(sketch.shapes(b, name)) for b in blocks) for name in chains.chains}
    computed = {
        (position, name): [
            [of(made) for made in _chains(matrix, name, chains)]
            for matrix in sketch.matrices(position, name)
        ]
        for positions, names in ((blocks, tuple(chains.chains)), (sketch.ends, end_statistics()))
        for position in positions
        for name in names
    }
    means = {}
    for name, rows in chains.chains.items():
        means[name] = np.zeros((len(rows), sketch.n_blocks, max(counts[name])))
        for block in blocks:
            for index, of_tensor in enumerate(computed[block, name]):
                means[name][:, block, index] = _means(of_tensor)
    ends = {
        (end, name): np.mean([_means(of_tensor) for of_tensor in computed[end, name]], axis=0)
        for end in sketch.ends
        for name in end_statistics()
        if computed[end, name]
    }
    products = {}
    for left, right in chains.pairs:
        n_left, n_right = chains.n_matrices[left], chains.n_matrices[right]
        products[left, right] = np.zeros((2, n_left, n_right))
        for block in blocks:
            for a, b in zip(computed[block, left], computed[block, right], strict=True):
                made = _products(a[:n_left], b[:n_right])
                products[left, right] += made / counts[left][block]
    return Tabulated(counts, means, products, ends, sketch.sizes)


def _chains(matrix: Matrix, statistic: str, chains: ChainSet) -> list[Matrix]:
    """Every chain of one tensor, a number as a matrix of one element; NaN once it overflowed."""
    by_row: dict[int, Matrix] = {}

    def enter(node: Node, value: Matrix) -> None:
        if node.row is not None:
            by_row[node.row] = value
        for name, child in node.children.items():
            primitive = get_unary(name)
            values = np.atleast_2d(primitive(value.values, value.column_scale))
            if not np.isfinite(value.values).all() or not np.isfinite(values).all():
                values = np.full(values.shape, np.nan)
            is_number = primitive.traits.gives is Gives.SCALAR
            enter(child, Matrix(values, 1 if is_number else value.true_columns))

    with np.errstate(all="ignore"):
        enter(chains.trees[statistic], matrix)
    return [by_row[row] for row in range(len(chains.chains[statistic]))]


def _means(of_tensor: list[Matrix]) -> FloatArray:
    return np.array([matrix.values.mean() for matrix in of_tensor])


def _products(left: list[Matrix], right: list[Matrix]) -> FloatArray:
    """The means (2, left, right) of mul and matmul; the product of means where none is defined."""
    a, b = left[0], right[0]
    f, g = (np.stack([matrix.values for matrix in side]) for side in (left, right))
    mul = matmul = np.outer(f.mean(axis=(1, 2)), g.mean(axis=(1, 2)))
    if a.true_shape == b.true_shape and a.kept == b.kept:
        mul = np.einsum("irc,jrc->ij", f, g) / (a.rows * a.kept)
    if a.true_columns == b.rows:
        rows = g[:, kept_columns(a.true_columns, a.kept)].mean(axis=2)
        matmul = np.einsum("ic,jc->ij", f.mean(axis=1), rows) * a.column_scale
    elif a.true_columns == b.true_columns and a.kept == b.kept:
        matmul = np.einsum("ic,jc->ij", f.mean(axis=1), g.mean(axis=1)) * a.column_scale
    return np.stack([mul, matmul])
