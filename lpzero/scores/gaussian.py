"""The Gaussian process of the project: a kernel is given, mean and standard deviation come out.

points (n, F), targets (n,), kernel, noise  ->  Process  ->  means (m,), standard deviations (m,)
candidates of kernel and noise              ->  most_likely: those with the largest evidence

Kernels add up: a constant, a plane (which extrapolates), a smooth or rough part with one length or
one per feature. Distances and products are divided by the number of features, so that a length
means the same for few features and for many. The matrices have a few hundred rows, for which one
BLAS thread is the fastest, and with one thread the same points give the same bytes in any process.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.special import ndtri
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from lpzero.arrays import FloatArray, IntArray
from lpzero.errors import FitnessError
from lpzero.judgement.ranks import rank, rank_targets

_LOG_TWO_PI = math.log(2 * math.pi)
_BLOCK = 2000  # points whose covariances with centres are computed at a time
_JITTERS = (0.0, 1e-10, 1e-8, 1e-6)  # shares of the largest variance, added until it is definite


class Kernel:
    """The covariance of the values at two points; kernels can be added."""

    def between(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """The covariances (n, m) of the values at points (n, F) and (m, F), without noise."""
        raise NotImplementedError

    def variances(self, x: FloatArray) -> FloatArray:
        """The variances (n,) at points (n, F): the diagonal of `between(x, x)`."""
        raise NotImplementedError

    def __add__(self, other: Kernel) -> Sum:
        return Sum((self, other))


@dataclass(frozen=True, slots=True)
class Sum(Kernel):
    """The sum of kernels."""

    parts: tuple[Kernel, ...]

    def between(self, x: FloatArray, y: FloatArray) -> FloatArray:
        first, *others = (part.between(x, y) for part in self.parts)
        return sum(others, first)

    def variances(self, x: FloatArray) -> FloatArray:
        first, *others = (part.variances(x) for part in self.parts)
        return sum(others, first)


@dataclass(frozen=True, slots=True)
class Constant(Kernel):
    """The same unknown number everywhere."""

    variance: float

    def between(self, x: FloatArray, y: FloatArray) -> FloatArray:
        return np.full((len(x), len(y)), self.variance)

    def variances(self, x: FloatArray) -> FloatArray:
        return np.full(len(x), self.variance)


@dataclass(frozen=True, slots=True)
class Plane(Kernel):
    """A linear function of the features: variance · x·y / F."""

    variance: float

    def between(self, x: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(self.variance * (x @ y.T) / _n_features(x))

    def variances(self, x: FloatArray) -> FloatArray:
        return np.asarray(self.variance * (x * x).sum(axis=1) / _n_features(x))


@dataclass(frozen=True, slots=True)
class Smooth(Kernel):
    """A smooth function: variance · exp(−|x − y|² / (2 F length²)); a length per feature or one."""

    variance: float
    length: float | tuple[float, ...]

    def between(self, x: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(self.variance * np.exp(-_squares(x, y, self.length) / 2))

    def variances(self, x: FloatArray) -> FloatArray:
        return np.full(len(x), self.variance)


@dataclass(frozen=True, slots=True)
class Rough(Kernel):
    """A continuous function that may have kinks: variance · exp(−|x − y| / (√F length))."""

    variance: float
    length: float | tuple[float, ...]

    def between(self, x: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(self.variance * np.exp(-np.sqrt(_squares(x, y, self.length))))

    def variances(self, x: FloatArray) -> FloatArray:
        return np.full(len(x), self.variance)


def _squares(x: FloatArray, y: FloatArray, length: float | tuple[float, ...]) -> FloatArray:
    """The squared distances (n, m) in lengths, divided by the number of features."""
    x, y = x / np.asarray(length), y / np.asarray(length)
    squares = (x * x).sum(axis=1)[:, np.newaxis] + (y * y).sum(axis=1) - 2 * (x @ y.T)
    return np.asarray(np.maximum(squares, 0) / _n_features(x))


@dataclass(frozen=True, slots=True)
class OfFeatures(Kernel):
    """A kernel of the features from place `start` up to, not including, `stop`."""

    kernel: Kernel
    start: int | None
    stop: int | None

    def between(self, x: FloatArray, y: FloatArray) -> FloatArray:
        places = slice(self.start, self.stop)
        return self.kernel.between(x[:, places], y[:, places])

    def variances(self, x: FloatArray) -> FloatArray:
        return self.kernel.variances(x[:, self.start : self.stop])


def _n_features(x: FloatArray) -> int:
    return max(1, int(x.shape[1]))


class InverseGamma(NamedTuple):
    """The distribution of the unknown factor of all covariances before any target is seen."""

    shape: float
    rate: float

    def given(self, whitened: FloatArray) -> InverseGamma:
        """The distribution given targets (n,) that are independent up to the factor."""
        squares = float(whitened @ whitened)
        return InverseGamma(self.shape + 0.5 * len(whitened), self.rate + 0.5 * squares)


class Process:
    """The process given points (n, F), their targets (n,) and the variance of the targets' noise.

    `prior` is the mean before any target is seen: a number, or one per point (n,). `covariances`
    (n, n) are those of the points, if they are known already.
    """

    def __init__(
        self,
        kernel: Kernel,
        noise: float,
        points: FloatArray,
        targets: FloatArray,
        prior: float | FloatArray = 0.0,
        covariances: FloatArray | None = None,
    ) -> None:
        self.kernel, self.noise, self.points = kernel, noise, points
        if covariances is None:
            covariances = kernel.between(points, points)
        self._factor = _factor(covariances, noise)
        # Half solved: L⁻¹ (targets − prior); solved again with Lᵀ where predictions need it.
        self._half = solve_triangular(self._factor, targets - prior, lower=True)

    @cached_property
    def evidence(self) -> float:
        """The logarithm of the likelihood of the targets."""
        logs = math.fsum(np.log(np.diag(self._factor)))
        return -0.5 * float(self._half @ self._half) - logs - 0.5 * len(self._half) * _LOG_TWO_PI

    def evidence_of_scales(self, prior: InverseGamma) -> float:
        """The same if kernel and noise have an unknown factor: it is integrated out."""
        n = len(self._half)
        shape, rate = prior.given(self._half)
        logs = math.fsum(np.log(np.diag(self._factor)))
        before = prior.shape * math.log(prior.rate) - math.lgamma(prior.shape)
        after = shape * math.log(rate) - math.lgamma(shape)
        return before - after - logs - 0.5 * n * _LOG_TWO_PI

    def student(self, prior: InverseGamma) -> tuple[float, float]:
        """The degrees of freedom of the values, and the factor of their deviations, with it.

        Given the targets, (value − expected) / (factor · deviation) is then Student's t.
        """
        shape, rate = prior.given(self._half)
        return 2 * shape, math.sqrt(rate / shape)

    @cached_property
    def _weights(self) -> FloatArray:
        return np.asarray(solve_triangular(self._factor, self._half, lower=True, trans="T"))

    def predict(self, points: FloatArray, prior: float | FloatArray = 0.0) -> FloatArray:
        """The expected values (m,) at new points (m, F)."""
        return np.asarray(prior + self.kernel.between(points, self.points) @ self._weights)

    def deviations(self, points: FloatArray) -> FloatArray:
        """The standard deviations (m,) of the values at new points (m, F), without noise."""
        return self._left(points, self.kernel.between(self.points, points))

    def distributions(
        self, points: FloatArray, prior: float | FloatArray = 0.0
    ) -> tuple[FloatArray, FloatArray]:
        """Both of them, from one matrix of covariances."""
        between = self.kernel.between(self.points, points)
        return np.asarray(prior + self._weights @ between), self._left(points, between)

    def _left(self, points: FloatArray, between: FloatArray) -> FloatArray:
        explained = np.square(solve_triangular(self._factor, between, lower=True)).sum(axis=0)
        left = self.kernel.variances(points) - explained
        return np.asarray(np.sqrt(np.maximum(left, 0.0)))


class SparseProcess:
    """The process of many points (n, F), as a sum of kernels around a few of them: `centres`.

    It has seen every target, for the price of matrices of centres (the projected process).
    """

    def __init__(
        self, chosen: Hyperparameters, points: FloatArray, targets: FloatArray, centres: IntArray
    ) -> None:
        self.kernel, self.centres = chosen.kernel, points[centres]
        own = self.kernel.between(self.centres, self.centres)
        products, by_target = chosen.noise * own, np.zeros(len(centres))
        for start in range(0, len(points), _BLOCK):
            between = self.kernel.between(self.centres, points[start : start + _BLOCK])
            products += between @ between.T
            by_target += between @ targets[start : start + _BLOCK]
        factor = _factor(products, _JITTERS[1] * float(np.diag(products).max()))
        half = solve_triangular(factor, by_target, lower=True)
        self._weights = solve_triangular(factor, half, lower=True, trans="T")

    def predict(self, points: FloatArray) -> FloatArray:
        """The expected values (m,) at new points (m, F)."""
        return np.concatenate(
            [
                self.kernel.between(points[start : start + _BLOCK], self.centres) @ self._weights
                for start in range(0, len(points), _BLOCK)
            ]
        )


def _factor(covariances: FloatArray, noise: float) -> FloatArray:
    """The lower Cholesky factor of covariances (n, n) with noise on the diagonal.

    Repeated points with hardly any noise are singular up to rounding: then the least jitter that
    helps is added.
    """
    largest = float(np.diag(covariances).max(initial=0.0)) or 1.0
    for jitter in _JITTERS:
        noisy = covariances.copy()
        np.einsum("ii->i", noisy)[:] += noise + jitter * largest
        try:
            return np.asarray(cholesky(noisy, lower=True, overwrite_a=True))
        except LinAlgError:
            continue
        except ValueError:  # infinite or NaN
            break
    raise FitnessError("the points of a Gaussian process have no usable covariances")


class Hyperparameters(NamedTuple):
    """What the evidence chooses: the kernel and the variance of the noise."""

    kernel: Kernel
    noise: float


def most_likely(
    candidates: Iterable[Hyperparameters], points: FloatArray, targets: FloatArray, most: int
) -> Hyperparameters:
    """The candidate with the largest evidence on at most `most` of the points."""
    some = some_rows(len(points), most)
    points, targets = points[some], targets[some]
    # Candidates that differ in the noise follow each other.
    between = lru_cache(maxsize=1)(lambda kernel: kernel.between(points, points))
    # max returns the first of equals, so the choice is deterministic.
    return max(
        candidates,
        key=lambda one: (
            Process(
                one.kernel, one.noise, points, targets, covariances=between(one.kernel)
            ).evidence
        ),
    )


def some_rows(n: int, most: int) -> IntArray:
    """Up to `most` of n rows, always the same."""
    if n <= most:
        return np.arange(n)
    order = np.random.Generator(np.random.Philox(0)).permutation(n)
    return np.sort(order[:most])


def one_thread() -> AbstractContextManager[Any]:
    """A context with one BLAS thread."""
    return threadpool_limits(limits=1, user_api="blas")  # type: ignore[no-any-return]


class NormalScale:
    """Numbers to normal scores: the normal quantile of a number's place among given ones (n,).

    The given numbers have the quantiles of their ranks. Between them the scale is linear, and
    beyond them it goes on as steeply as it rises on the whole: larger numbers stay larger.
    """

    def __init__(self, numbers: FloatArray) -> None:
        self.numbers = numbers
        ranks, where, counts = np.unique(rank(numbers), return_inverse=True, return_counts=True)
        self._at = np.bincount(where.reshape(-1), numbers) / counts
        self._scores = ndtri((ranks - 0.5) / len(numbers))
        spread = float(numbers.std())
        self._slope = normal_scores(rank(numbers)).std() / spread if len(ranks) > 1 else 0.0

    def __call__(self, numbers: FloatArray) -> FloatArray:
        """The normal scores of numbers of any shape."""
        low, high = self._at[0], self._at[-1]
        beyond = np.maximum(numbers - high, 0.0) - np.maximum(low - numbers, 0.0)
        return np.asarray(np.interp(numbers, self._at, self._scores) + self._slope * beyond)


def normal_scores(ranks: FloatArray) -> FloatArray:
    """The normal quantiles (n,) of average ranks (n,) from 1 to n."""
    return np.asarray(ndtri((ranks - 0.5) / len(ranks)))


def normal_targets(targets: FloatArray) -> FloatArray:
    """The normal scores (n,) of finite targets (n,)."""
    return normal_scores(rank_targets(targets))
