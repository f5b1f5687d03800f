"""A surrogate: targets of any architecture, predicted by a Gaussian process fitted to a table.

The process (`lpzero.scores.gaussian`) on the features of architectures (`lpzero.scores.features`)
has k(x, y) = l (1 + x.y / F) + r exp(-|x - y|^2 / (2 F s^2)) + noise: a plane, which extrapolates
outside the data, and a smooth residual. Targets are standardised. The grid point with the largest
marginal likelihood is chosen, on at most 200 points because that is the slow part.

*The surrogate* has a cross-validated error. Targets that are all negative (minus a perplexity,
minus a loss) may be fitted on a logarithmic scale; the scale with the smaller error is used.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.judgement.correlation import spearman
from lpzero.scores.features import Features, describe
from lpzero.scores.gaussian import (
    Constant,
    Hyperparameters,
    Plane,
    Process,
    Smooth,
    most_likely,
    one_thread,
)
from lpzero.search.evaluators import describe_table
from spaces.base import Space
from spaces.tables import Table

FOLDS = 10
_SEED = 0
_INTERVAL = (0.025, 0.975)
_PLANES = (1.0, 10.0)
_RESTS = (0.03, 0.3, 3.0)
_SCALES = (0.5, 1.0, 2.0, 4.0)
_NOISES = (1e-4, 1e-3, 1e-2, 1e-1)
_MOST_FOR_CHOICE = 200
GRID = tuple(
    Hyperparameters(Constant(plane) + Plane(plane) + Smooth(rest, scale), noise)
    for plane, rest, scale, noise in itertools.product(_PLANES, _RESTS, _SCALES, _NOISES)
)


class Fitted:
    """The process of described architectures (n rows) and their targets (n,), in their units."""

    def __init__(self, rows: Sequence[Mapping[str, float]], targets: FloatArray) -> None:
        self.features = Features.of(rows)
        points = self.features(rows)
        self._centre, self._spread = targets.mean(), targets.std() or 1.0
        standardised = (targets - self._centre) / self._spread
        chosen = most_likely(GRID, points, standardised, _MOST_FOR_CHOICE)
        self._process = Process(*chosen, points, standardised)

    def predict(self, rows: Sequence[Mapping[str, float]]) -> FloatArray:
        """The expected targets (m,) of described architectures (m rows)."""
        mean = self._process.predict(self.features(rows))
        return np.asarray(self._centre + self._spread * mean)


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
        self.space, rows = space, describe(space, table.archs)
        with one_thread():
            held_out = [(scale, cross_validated(rows, table.targets, scale)) for scale in scales]
            self.scale, self.held_out = min(
                held_out, key=lambda pair: _rmse(pair[1], table.targets)
            )
            self._fitted = Fitted(rows, self.scale.transform(table.targets))

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

    def interval(self, target: float) -> list[float]:
        """Where 95% of targets are whose prediction is this: the errors on rows left out."""
        transform, inverse = self.scale.transform, self.scale.inverse
        errors = transform(self.table.targets) - transform(self.held_out)
        ends = transform(np.array([target])) + np.quantile(errors, _INTERVAL)
        return [float(f"{end:.6g}") for end in inverse(ends)]

    def outside(self, arch: Any) -> list[str]:
        """The features in which the architecture is outside the table's range: extrapolated."""
        return self._fitted.features.outside(describe(self.space, [arch])[0])

    def is_inside(self, arch: Any) -> bool:
        """Whether the architecture is inside the table's range in every feature."""
        return not self.outside(arch)

    def evaluate(self, archs: Sequence[Any]) -> Iterable[float]:
        with one_thread():
            return [self._predicted(arch) for arch in archs]

    def _predicted(self, arch: Any) -> float:
        # One by one and rounded, so that the order of summation does not change the result.
        [target] = self.scale.inverse(self._fitted.predict(describe(self.space, [arch])))
        return float(f"{target:.9e}")


def cross_validated(
    rows: Sequence[Mapping[str, float]], targets: FloatArray, scale: Scale
) -> FloatArray:
    """Predictions (n,) of each row from the other folds, which also fit the features."""
    n = len(rows)
    order = np.random.Generator(np.random.Philox(_SEED)).permutation(n)
    predictions = np.empty(n)
    for part in np.array_split(order, min(FOLDS, n)):
        rest = np.setdiff1d(order, part)
        fitted = Fitted([rows[i] for i in rest], scale.transform(targets[rest]))
        predictions[part] = scale.inverse(fitted.predict([rows[i] for i in part]))
    return predictions


def _rmse(predictions: FloatArray, targets: FloatArray) -> float:
    return math.sqrt(float(np.mean((predictions - targets) ** 2)))
