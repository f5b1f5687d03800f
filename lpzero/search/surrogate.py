"""A surrogate: targets of any architecture, predicted by a Gaussian process fitted to a table.

*Features* of an architecture of any space: logarithms of parameters, decoder and attention
parameters, flops, depth and width; every numeric field of the architecture outside its blocks; for
every numeric field of the blocks the logarithm of its mean, minimum and maximum; for every
categorical field the share of blocks with each value; the space's own traits.

*The process* has k(x, y) = l (1 + x.y / F) + r exp(-|x - y|^2 / (2 F s^2)) + noise: a plane, which
extrapolates outside the data, and a smooth residual. Targets are standardised. The grid point with
the largest marginal likelihood is chosen, on at most 200 points because that is the slow part.
Shapes: n points, F features, m new points.

*The surrogate* has a cross-validated error. Targets that are all negative (minus a perplexity,
minus a loss) may be fitted on a logarithmic scale; the scale with the smaller error is used. The
matrices have a few hundred rows, for which one BLAS thread is the fastest; several wait for each
other, for minutes if other processes use the cores.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_solve, cholesky
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from lpzero.arrays import FloatArray, IntArray
from lpzero.judgement import counters
from lpzero.judgement.correlation import spearman
from lpzero.search.evaluators import describe_table
from spaces.base import Space
from spaces.tables import Table

FOLDS = 10
_SEED = 0
_PLANES = (1.0, 10.0)
_RESTS = (0.03, 0.3, 3.0)
_SCALES = (0.5, 1.0, 2.0, 4.0)
_NOISES = (1e-4, 1e-3, 1e-2, 1e-1)
_MOST_FOR_CHOICE = 200


class Features:
    """The features that vary over the given architectures, standardised over them."""

    def __init__(self, space: Space[Any], archs: Sequence[Any]) -> None:
        self.space = space
        rows = [_describe(space, arch) for arch in archs]
        self.names = sorted({name for row in rows for name in row})
        raw = self._matrix(rows)
        varies = raw.std(axis=0) > 1e-12
        self.names = [name for name, keep in zip(self.names, varies, strict=True) if keep]
        self._centre, self._spread = raw[:, varies].mean(axis=0), raw[:, varies].std(axis=0)
        self._lowest, self._highest = raw[:, varies].min(axis=0), raw[:, varies].max(axis=0)

    def __call__(self, archs: Sequence[Any]) -> FloatArray:
        """The standardised features (n, F)."""
        raw = self._matrix([_describe(self.space, arch) for arch in archs])
        scaled: FloatArray = (raw - self._centre) / self._spread
        return scaled

    def outside(self, arch: Any) -> list[str]:
        """The features in which the architecture is outside the range of the given ones."""
        raw = self._matrix([_describe(self.space, arch)])[0]
        beyond = (raw < self._lowest - 1e-9) | (raw > self._highest + 1e-9)
        return [name for name, is_beyond in zip(self.names, beyond, strict=True) if is_beyond]

    def _matrix(self, rows: Sequence[dict[str, float]]) -> FloatArray:
        return np.array([[row.get(name, 0.0) for name in self.names] for row in rows])


def _describe(space: Space[Any], arch: Any) -> dict[str, float]:
    """The raw features by name."""
    features = {}
    for name in ("parameters", "decoder-parameters", "attention-parameters", "flops", "depth"):
        features[name] = math.log(
            max(1.0, counters.get(name)(space, arch))
        )  # attention may be none
    features["width"] = math.log(space.width(arch))
    for name, value in space.to_json(arch).items():
        if isinstance(value, (int, float)):
            features[f"field {name}"] = float(value)
    blocks = [dataclasses.asdict(block) for block in space.blocks(arch)]
    for name in blocks[0]:
        values = [block[name] for block in blocks]
        if isinstance(values[0], str):
            for value, n in Counter(values).items():
                features[f"share of {name} {value}"] = n / len(blocks)
        elif isinstance(values[0], (int, float)):
            features[f"mean {name}"] = math.log1p(sum(values) / len(values))
            features[f"least {name}"] = math.log1p(min(values))
            features[f"largest {name}"] = math.log1p(max(values))
    return features | space.traits(arch)


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


class Scale(NamedTuple):
    """The transformation of targets before the fit, and its inverse."""

    name: str
    transform: Callable[[FloatArray], FloatArray]
    inverse: Callable[[FloatArray], FloatArray]


PLAIN = Scale("target", lambda y: y, lambda z: z)
LOGARITHM = Scale("minus log of minus target", lambda y: -np.log(-y), lambda z: -np.exp(-z))


class Surrogate:
    """Predicted targets of any architecture of the space."""

    name = "surrogate"
    is_free = True
    pool: Sequence[Any] | None = None

    def __init__(self, space: Space[Any], table: Table) -> None:
        self.table, self.target = table, f"predicted {table.target}"
        scales = [PLAIN, LOGARITHM] if (table.targets < 0).all() else [PLAIN]
        self._features = Features(space, table.archs)
        with _one_thread():
            held_out = [(scale, cross_validated(table, scale)) for scale in scales]
            self.scale, self.held_out = min(
                held_out, key=lambda pair: _rmse(pair[1], table.targets)
            )
            points = self._features(table.archs)
            self._process = Process(points, self.scale.transform(table.targets))

    @cached_property
    def rmse(self) -> float:
        """The cross-validated root mean square error, in units of the target."""
        return _rmse(self.held_out, self.table.targets)

    @cached_property
    def rho(self) -> float:
        """Spearman's rho of cross-validated predictions and targets."""
        return spearman(self.held_out, self.table.targets)

    def describe(self) -> dict[str, Any]:
        return {
            "evaluator": self.name,
            **describe_table(self.table),
            "fitted": self.scale.name,
            "folds": FOLDS,
            "rmse": round(self.rmse, 6),
            "rho": round(self.rho, 6),
        }

    def outside(self, arch: Any) -> list[str]:
        """The features in which the architecture is outside the table's range: extrapolated."""
        return self._features.outside(arch)

    def is_inside(self, arch: Any) -> bool:
        """Whether the architecture is inside the table's range in every feature."""
        return not self.outside(arch)

    def evaluate(self, archs: Sequence[Any]) -> Iterable[float]:
        with _one_thread():
            return [self._predicted(arch) for arch in archs]

    def _predicted(self, arch: Any) -> float:
        # One by one and rounded, so that the order of summation does not change the result.
        [target] = self.scale.inverse(self._process.predict(self._features([arch])))
        return float(f"{target:.9e}")


def cross_validated(table: Table, scale: Scale) -> FloatArray:
    """Predictions (n,) of each row from the other folds, which also fit the features."""
    n = len(table)
    order = np.random.Generator(np.random.Philox(_SEED)).permutation(n)
    predictions = np.empty(n)
    for part in np.array_split(order, min(FOLDS, n)):
        rest = np.setdiff1d(order, part)
        features = Features(table.space, [table.archs[i] for i in rest])
        process = Process(
            features([table.archs[i] for i in rest]), scale.transform(table.targets[rest])
        )
        predictions[part] = scale.inverse(process.predict(features([table.archs[i] for i in part])))
    return predictions


def _one_thread() -> AbstractContextManager[Any]:
    return threadpool_limits(limits=1, user_api="blas")  # type: ignore[no-any-return]


def _rmse(predictions: FloatArray, targets: FloatArray) -> float:
    return math.sqrt(float(np.mean((predictions - targets) ** 2)))
