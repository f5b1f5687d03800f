"""What a user would try first beside a formula of columns: ridge regression, and a predictor.

columns (A,), labelled rows, targets  ->  predictions (A,), which rank but are not formulas

Ridge regression is on the columns' logarithms. The predictor is a weighted mean of normal scores:
of the formula's score, of a Gaussian process and of boosted trees, both on the columns' normal
scores. The process has one length per column (automatic relevance): a column that does not help
gets a long one, and drops out. Shape (smooth or rough), plane, lengths and noise are those of the
largest evidence; the weights and the number of trees are fitted on rows left out. C columns,
A rows, n labelled rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
from scipy.optimize import nnls

from lpzero.arrays import FloatArray, IntArray
from lpzero.scores.boosted_trees import staged_scores
from lpzero.scores.column_features import MAIN, features_of
from lpzero.scores.gaussian import (
    Hyperparameters,
    Kernel,
    NormalScale,
    Plane,
    Process,
    Rough,
    Smooth,
    SparseProcess,
    normal_targets,
    one_thread,
    some_rows,
)
from lpzero.scores.values import Values

_RIDGE = 1e-3  # of a column's variance
_MOST_CENTRES = 1600  # rows that the process of more rows is a sum of kernels around
_MANY_ROWS, _FEW_FOLDS = 2000, 2  # of more rows so many folds tell the weights
_MOST_FOR_CHOICE = 600  # rows that kernel and noise are chosen on
_SHAPES: tuple[type[Smooth] | type[Rough], ...] = (Smooth, Rough)
_PLANES, _LENGTHS, _NOISES = (0.1, 1.0), (0.5, 1.0, 2.0, 4.0), (0.03, 0.1, 0.3, 0.6)
_FACTORS = (0.5, 2.0, 8.0)  # of a column's length, tried in turn
_ROUNDS = 2

LeftOut = tuple[IntArray, IntArray, FloatArray]  # of a fold: rows searched, left out, scores (A,)


def ridge_scores(
    columns: Mapping[str, FloatArray], rows: IntArray, targets: FloatArray
) -> FloatArray:
    """The predictions (A,) of ridge regression on the columns' logarithms, fitted on the rows."""
    logs = _main(columns, rows)
    fitted, target = logs[:, rows], normal_targets(targets[rows])
    products = fitted @ fitted.T / len(rows) + _RIDGE * np.eye(len(logs))
    return np.asarray(np.linalg.solve(products, fitted @ target / len(rows)) @ logs)


def predictor_scores(
    columns: Mapping[str, FloatArray],
    rows: IntArray,
    targets: FloatArray,
    formula: FloatArray,
    folds: Sequence[LeftOut],
) -> FloatArray:
    """The predictions (A,) of formula (A,), process and trees, fitted on the rows.

    `folds` are the rows without some, those left out, and the scores (A,) of a formula that was
    searched without these: a formula that has seen them would weigh too much.
    """
    points = _points(columns, rows)
    with one_thread():
        chosen = _hyperparameters(points, rows, targets)

        def parts(known: IntArray, scores: FloatArray) -> FloatArray:
            """The scores (2 + stages, A) of formula, process and trees, fitted on these rows."""
            own = normal_targets(targets[known])
            of_formula = NormalScale(scores[known])(scores)
            process = _process(chosen, points, known, own)
            return np.vstack([of_formula, process, staged_scores(points, known, own)])

        left_out = [
            (parts(known, scores)[:, left], normal_targets(targets[left]))
            for known, left, scores in folds[: _FEW_FOLDS if len(rows) > _MANY_ROWS else None]
        ]
        predicted, wanted = (np.concatenate(of, axis=-1) for of in zip(*left_out, strict=True))
        fits = [nnls(predicted[[0, 1, stage]].T, wanted) for stage in range(2, len(predicted))]
        best = min(range(len(fits)), key=lambda stage: fits[stage][1])
        return np.asarray(fits[best][0] @ parts(rows, formula)[[0, 1, 2 + best]])


def _process(
    chosen: Hyperparameters, points: FloatArray, rows: IntArray, targets: FloatArray
) -> FloatArray:
    """The predictions (A,) of the process alone, fitted on the rows with their targets (n,)."""
    if len(rows) <= _MOST_CENTRES:
        return Process(*chosen, points[rows], targets).predict(points)
    centres = some_rows(len(rows), _MOST_CENTRES)
    return SparseProcess(chosen, points[rows], targets, centres).predict(points)


def process_scores(
    columns: Mapping[str, FloatArray], rows: IntArray, targets: FloatArray
) -> FloatArray:
    """The predictions (A,) of the Gaussian process alone, fitted on the rows."""
    points = _points(columns, rows)
    with one_thread():
        chosen = _hyperparameters(points, rows, targets)
        return _process(chosen, points, rows, normal_targets(targets[rows]))


def _points(columns: Mapping[str, FloatArray], rows: IntArray) -> FloatArray:
    """The normal scores (A, C) of the columns among the rows."""
    points = np.column_stack([NormalScale(of[rows])(of) for of in columns.values()])
    return np.clip(points, -4.0, 4.0)  # far beyond the labelled rows nothing is known


def _hyperparameters(points: FloatArray, rows: IntArray, targets: FloatArray) -> Hyperparameters:
    some = rows[some_rows(len(rows), _MOST_FOR_CHOICE)]
    return _most_likely(points[some], normal_targets(targets[some]))


def _main(columns: Mapping[str, FloatArray], rows: IntArray) -> FloatArray:
    """The columns on their main scale (C, A), with mean 0 and variance 1 on the rows."""
    features = features_of(columns, rows, MAIN)
    scores = Values(columns=columns).scores(features.single)
    centred = scores - features.means[:, np.newaxis]
    return np.asarray(centred / features.spreads[:, np.newaxis])


def _most_likely(points: FloatArray, target: FloatArray) -> Hyperparameters:
    """Shape, plane, lengths and noise: the best of a grid, then length by length."""
    n_columns = points.shape[1]

    def evidence(kernel: Kernel, noise: float, covariances: FloatArray | None = None) -> float:
        return Process(kernel, noise, points, target, covariances=covariances).evidence

    best, start = -np.inf, None
    for shape, plane, length in product(_SHAPES, _PLANES, _LENGTHS):
        kernel = Plane(plane) + shape(1.0, (length,) * n_columns)
        covariances = kernel.between(points, points)
        for noise in _NOISES:
            value = evidence(kernel, noise, covariances)
            if value > best:
                best, start = value, (shape, plane, length, noise)
    assert start is not None, "the evidence is finite"
    shape, plane, length, noise = start
    lengths = [length] * n_columns
    for _, column in product(range(_ROUNDS), range(n_columns)):
        own = lengths[column]
        for factor in _FACTORS:
            tried = (*lengths[:column], own * factor, *lengths[column + 1 :])
            value = evidence(Plane(plane) + shape(1.0, tried), noise)
            if value > best:
                best, lengths = value, list(tried)
    kernel = Plane(plane) + shape(1.0, tuple(lengths))
    return Hyperparameters(kernel, max(_NOISES, key=lambda of: evidence(kernel, of)))
