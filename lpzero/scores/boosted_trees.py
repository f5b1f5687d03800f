"""Gradient boosting of symmetric trees: every node of a depth asks the same question.

points (A, C), labelled rows (n,), targets (n,)  ->  staged_scores: predictions (K, A) after some
numbers of trees

A tree is a few questions "is column c above its t-th cut?", and a number for each way to answer
them. Cuts are quantiles of the labelled rows. Each tree is fitted to what the others leave of half
of the rows, and a share of it is added. C columns, A rows, B bins.
"""

from __future__ import annotations

import numpy as np

from lpzero.arrays import FloatArray, IntArray

STAGES = (25, 50, 100, 200, 400)  # trees
_BINS = 64
_DEPTH = 5
_RATE = 0.1  # the share of a tree that is added
_ROWS, _COLUMNS = 0.5, 0.5  # shares that a tree and a question see
_PRIOR = 3.0  # rows of residual 0 that each leaf has beside its own


def staged_scores(points: FloatArray, rows: IntArray, targets: FloatArray) -> FloatArray:
    """The predictions (stages, A) after so many trees as `STAGES` has, fitted on the rows (n,)."""
    rng = np.random.Generator(np.random.Philox(0))
    bins = _binned(points, rows)
    n, scores, staged = len(rows), np.zeros(len(points)), []
    for tree in range(1, STAGES[-1] + 1):
        seen = rng.permutation(n)[: max(1, round(_ROWS * n))]
        left = targets[seen] - scores[rows[seen]]
        questions = _questions(bins[:, rows[seen]], left, rng)
        leaves = _leaves(bins, questions)
        of_seen = leaves[rows[seen]]
        sums = np.bincount(of_seen, left, 1 << _DEPTH)
        scores += _RATE * (sums / (np.bincount(of_seen, minlength=1 << _DEPTH) + _PRIOR))[leaves]
        if tree in STAGES:
            staged.append(scores.copy())
    return np.stack(staged)


def _binned(points: FloatArray, rows: IntArray) -> IntArray:
    """The bin (C, A) of every number: how many cuts are below it."""
    shares = np.linspace(0, 1, _BINS + 1)[1:-1]
    cuts = np.quantile(points[rows], shares, axis=0, method="nearest").T
    binned = [np.searchsorted(np.unique(of), x) for of, x in zip(cuts, points.T, strict=True)]
    return np.stack(binned).astype(np.int64)


def _questions(
    bins: IntArray, targets: FloatArray, rng: np.random.Generator
) -> list[tuple[int, int]]:
    """Column and bin of each question, which together leave least of the targets (m,)."""
    n_columns, n_rows = bins.shape
    n_tried = max(1, round(_COLUMNS * n_columns))
    weights = np.tile(targets, n_tried)
    leaves = np.zeros(n_rows, dtype=np.int64)
    questions: list[tuple[int, int]] = []
    for depth in range(_DEPTH):
        columns = rng.permutation(n_columns)[:n_tried]
        of_column = (_BINS << depth) * np.arange(n_tried)[:, np.newaxis]
        cells = (of_column + leaves * _BINS + bins[columns]).reshape(-1)
        shape = (n_tried, 1 << depth, _BINS)
        sums, counts = (
            np.bincount(cells, of, n_tried * _BINS << depth).reshape(shape).cumsum(axis=2)
            for of in (weights, None)
        )
        above = (sums[..., -1:] - sums) ** 2 / (counts[..., -1:] - counts + _PRIOR)
        explained = (sums**2 / (counts + _PRIOR) + above).sum(axis=1)
        best, at = divmod(int(np.argmax(explained)), _BINS)
        questions.append((int(columns[best]), at))
        leaves = 2 * leaves + (bins[columns[best]] > at)
    return questions


def _leaves(bins: IntArray, questions: list[tuple[int, int]]) -> IntArray:
    """The leaf (A,) that each row's answers lead to."""
    leaves = np.zeros(bins.shape[1], dtype=np.int64)
    for column, at in questions:
        leaves = 2 * leaves + (bins[column] > at)
    return leaves
