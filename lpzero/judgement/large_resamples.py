"""Ranks and concordant pairs in resamples of many rows, without a matrix of all pairs.

All quantities are sums of whole numbers and halves, which float64 holds exactly, so the results
equal those of `bootstrap` bit for bit. Shapes: R resamples, n rows.
"""

from __future__ import annotations

import numpy as np

from lpzero.arrays import FloatArray, IntArray

MANY = 1500  # rows from which this is faster and a matrix of pairs large


def ranks_and_pairs(counts: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The average ranks (R, n) of x (n,) in each resample, drawn as often as counts (R, n) say,
    and the ordered pairs of draws (R,) that differ in x."""
    levels, weights = _levels(counts, x)
    below = np.cumsum(weights, axis=1) - weights
    ranks: FloatArray = (below + 0.5 * weights + 0.5)[:, levels]
    return ranks, _pairs(counts, weights)


def differing_pairs(counts: FloatArray, x: FloatArray) -> FloatArray:
    """The ordered pairs of draws (R,) that differ in x."""
    return _pairs(counts, _levels(counts, x)[1])


def _pairs(counts: FloatArray, weights: FloatArray) -> FloatArray:
    total: FloatArray = counts.sum(axis=1) ** 2 - (weights**2).sum(axis=1)
    return total


def concordance(counts: FloatArray, x: FloatArray, y: FloatArray) -> FloatArray:
    """Ordered pairs of draws that x and y order alike minus those they order differently (R,).

    Rows are taken by increasing x; a tree of partial sums over the levels of y (one row of R sums
    per node) tells how many draws before them lie below and above.
    """
    order = np.argsort(x, kind="stable")
    levels = np.unique(y, return_inverse=True)[1].reshape(-1)
    weights = np.ascontiguousarray(counts.T)  # (n, R): a row is added or read at a time
    n_levels = int(levels.max()) + 1
    tree = np.zeros((n_levels + 1, len(counts)))
    total, seen = np.zeros(len(counts)), np.zeros(len(counts))
    starts = np.flatnonzero(np.diff(x[order], prepend=np.nan) != 0)
    for start, stop in zip(starts, [*starts[1:], len(order)], strict=True):
        rows = order[start:stop]
        for row in rows:
            below, upto = _sum(tree, int(levels[row])), _sum(tree, int(levels[row]) + 1)
            total += weights[row] * (below - (seen - upto))
        for row in rows:
            _add(tree, int(levels[row]) + 1, weights[row])
            seen = seen + weights[row]
    return 2 * total


def _levels(counts: FloatArray, x: FloatArray) -> tuple[IntArray, FloatArray]:
    """The level of each row (n,), and how often each level is drawn (R, levels)."""
    distinct, levels = np.unique(x, return_inverse=True)
    levels = levels.reshape(-1)
    order = np.argsort(levels, kind="stable")
    if len(distinct) == len(x):  # without ties a level is a row
        return levels, counts[:, order]
    starts = np.flatnonzero(np.diff(levels[order], prepend=-1))
    return levels, np.add.reduceat(counts[:, order], starts, axis=1)


def _add(tree: FloatArray, node: int, values: FloatArray) -> None:
    while node < len(tree):
        tree[node] += values
        node += node & -node


def _sum(tree: FloatArray, node: int) -> FloatArray:
    """The sum (R,) over the levels up to the node."""
    total = np.zeros(tree.shape[1])
    while node:
        total += tree[node]
        node -= node & -node
    return total
