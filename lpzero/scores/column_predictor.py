"""What a user would try first beside a formula of columns: ridge regression, and a predictor.

columns (A,), labelled rows, targets  ->  predictions (A,), which rank but are not formulas

Ridge regression is on the columns' logarithms. The predictor is the mean of two normal scores: of
the formula's score, and of a Gaussian process on the columns' normal scores with one length per
column (automatic relevance): a column that does not help gets a long one, and drops out. Shape
(smooth or rough), plane, lengths and noise are those of the largest evidence. C columns, A rows, n
labelled rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import numpy as np

from lpzero.arrays import FloatArray, IntArray
from lpzero.scores.column_features import MAIN, features_of
from lpzero.scores.gaussian import (
    Hyperparameters,
    Kernel,
    NormalScale,
    Plane,
    Process,
    Rough,
    Smooth,
    normal_targets,
    one_thread,
    some_rows,
)
from lpzero.scores.values import Values

_RIDGE = 1e-3  # of a column's variance
_MOST_ROWS = 3000  # that the process is given
_MOST_FOR_CHOICE = 600  # rows that kernel and noise are chosen on
_SHAPES: tuple[type[Smooth] | type[Rough], ...] = (Smooth, Rough)
_PLANES, _LENGTHS, _NOISES = (0.1, 1.0), (0.5, 1.0, 2.0, 4.0), (0.03, 0.1, 0.3, 0.6)
_FACTORS = (0.5, 2.0, 8.0)  # of a column's length, tried in turn
_ROUNDS = 2


def ridge_scores(
    columns: Mapping[str, FloatArray], rows: IntArray, targets: FloatArray
) -> FloatArray:
    """The predictions (A,) of ridge regression on the columns' logarithms, fitted on the rows."""
    logs = _main(columns, rows)
    fitted, target = logs[:, rows], normal_targets(targets[rows])
    products = fitted @ fitted.T / len(rows) + _RIDGE * np.eye(len(logs))
    return np.asarray(np.linalg.solve(products, fitted @ target / len(rows)) @ logs)


def predictor_scores(
    columns: Mapping[str, FloatArray], rows: IntArray, targets: FloatArray, formula: FloatArray
) -> FloatArray:
    """The predictions (A,) of process and formula (A,), fitted on the rows."""
    of_formula = NormalScale(formula[rows])(formula)
    return np.asarray((process_scores(columns, rows, targets) + of_formula) / 2)


def process_scores(
    columns: Mapping[str, FloatArray], rows: IntArray, targets: FloatArray
) -> FloatArray:
    """The predictions (A,) of the Gaussian process alone, fitted on the rows."""
    points = np.column_stack([NormalScale(of[rows])(of) for of in columns.values()])
    points = np.clip(points, -4.0, 4.0)  # far beyond the labelled rows nothing is known
    some = rows[some_rows(len(rows), _MOST_ROWS)]
    target = normal_targets(targets[some])
    with one_thread():
        chosen = _most_likely(points[some], target)
        return Process(*chosen, points[some], target).predict(points)


def _main(columns: Mapping[str, FloatArray], rows: IntArray) -> FloatArray:
    """The columns on their main scale (C, A), with mean 0 and variance 1 on the rows."""
    features = features_of(columns, rows, MAIN)
    scores = Values(columns=columns).scores(features.single)
    centred = scores - features.means[:, np.newaxis]
    return np.asarray(centred / features.spreads[:, np.newaxis])


def _most_likely(points: FloatArray, target: FloatArray) -> Hyperparameters:
    """Shape, plane, lengths and noise: the best of a grid, then length by length."""
    some = some_rows(len(points), _MOST_FOR_CHOICE)
    points, target = points[some], target[some]
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
