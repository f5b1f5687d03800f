"""Gaussian process regression on standardised features, with its constants chosen from a grid.

k(x, y) = l (1 + x.y / F) + r exp(-|x - y|^2 / (2 F s^2)) + noise: a plane, which extrapolates
outside the data, and a smooth residual. Targets are standardised. The grid point with the largest
marginal likelihood is chosen, on at most 200 points because that is the slow part. Shapes: n
points, F features, m new points.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve, cholesky

from lpzero.arrays import FloatArray, IntArray

_PLANES = (1.0, 10.0)
_RESTS = (0.03, 0.3, 3.0)
_SCALES = (0.5, 1.0, 2.0, 4.0)
_NOISES = (1e-4, 1e-3, 1e-2, 1e-1)
_MOST_FOR_CHOICE = 200


@dataclass(frozen=True, slots=True)
class Kernel:
    """Variances of the plane and the residual, length scale of the residual, noise variance."""

    plane: float
    rest: float
    scale: float
    noise: float

    def between(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """The covariances (n, m) of points (n, F) and (m, F), without noise."""
        n_features = max(1, x.shape[1])
        products = x @ y.T
        squares = (x * x).sum(axis=1)[:, np.newaxis] + (y * y).sum(axis=1) - 2 * products
        smooth = np.exp(-np.maximum(squares, 0) / (2 * n_features * self.scale**2))
        covariances: FloatArray = self.plane * (1 + products / n_features) + self.rest * smooth
        return covariances


GRID = tuple(Kernel(*point) for point in itertools.product(_PLANES, _RESTS, _SCALES, _NOISES))


class Process:
    """The process given points (n, F) and their targets (n,)."""

    def __init__(self, points: FloatArray, targets: FloatArray) -> None:
        self.points = points
        self._centre, self._spread = targets.mean(), targets.std() or 1.0
        standardised = (targets - self._centre) / self._spread
        some = _some(len(points))
        # max returns the first of equals, so the choice is deterministic.
        self.kernel = max(GRID, key=lambda k: likelihood(k, points[some], standardised[some]))
        factor = _factor(self.kernel, points)
        self._weights = cho_solve((factor, True), standardised)

    def predict(self, points: FloatArray) -> FloatArray:
        """The expected targets (m,) of new points (m, F)."""
        mean = self.kernel.between(points, self.points) @ self._weights
        predicted: FloatArray = self._centre + self._spread * mean
        return predicted


def likelihood(kernel: Kernel, points: FloatArray, targets: FloatArray) -> float:
    """The log marginal likelihood of the targets (n,), without its constant."""
    factor = _factor(kernel, points)
    explained = float(targets @ cho_solve((factor, True), targets))
    return -0.5 * explained - math.fsum(np.log(np.diag(factor)))


def _some(n: int) -> IntArray:
    """Up to 200 of n points, always the same."""
    if n <= _MOST_FOR_CHOICE:
        return np.arange(n)
    order = np.random.Generator(np.random.Philox(0)).permutation(n)
    return np.sort(order[:_MOST_FOR_CHOICE])


def _factor(kernel: Kernel, points: FloatArray) -> FloatArray:
    noisy = kernel.between(points, points) + kernel.noise * np.eye(len(points))
    factor: FloatArray = cholesky(noisy, lower=True)
    return factor
