"""Tables as evaluators: looked up, or predicted by a surrogate that is fitted to one.

A look-up restricts the search to the architectures of the table. A surrogate is a Gaussian process
with its cross-validated error. Targets that are all negative (minus a perplexity, minus a loss) may
be fitted on a logarithmic scale; the scale with the smaller cross-validated error is used. The
matrices have a few hundred rows, for which one BLAS thread is the fastest; several wait for each
other, for minutes if other processes use the cores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from lpzero.arrays import FloatArray
from lpzero.judgement.correlation import spearman
from lpzero.search.features import Features
from lpzero.search.gaussian import Process
from spaces.base import Space
from spaces.tables import Table

FOLDS = 10
_SEED = 0


class LookUp:
    """Targets of a table; the mean where an architecture has several rows."""

    name = "table"
    is_free = True

    def __init__(self, table: Table) -> None:
        self.table, self.target = table, table.target
        rows: dict[Any, list[float]] = {}
        for arch, target in zip(table.archs, table.targets, strict=True):
            rows.setdefault(arch, []).append(float(target))
        self._targets = {arch: float(np.mean(found)) for arch, found in rows.items()}
        self.pool: Sequence[Any] | None = list(rows)

    def describe(self) -> dict[str, Any]:
        table = self.table
        return {
            "evaluator": self.name,
            "table": table.name,
            "digest": table.digest,
            "n": len(table),
        }

    def evaluate(self, archs: Sequence[Any]) -> Iterable[float]:
        return [self._targets[arch] for arch in archs]


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
        table = self.table
        return {
            "evaluator": self.name,
            "table": table.name,
            "digest": table.digest,
            "n": len(table),
            "fitted": self.scale.name,
            "folds": FOLDS,
            "rmse": round(self.rmse, 6),
            "rho": round(self.rho, 6),
        }

    def outside(self, arch: Any) -> list[str]:
        """The features in which the architecture is outside the table's range: extrapolated."""
        return self._features.outside(arch)

    def knows(self, arch: Any) -> bool:
        """Whether the architecture is inside the table's range in every feature."""
        return not self.outside(arch)

    def evaluate(self, archs: Sequence[Any]) -> Iterable[float]:
        with _one_thread():
            return [self._predicted(arch) for arch in archs]

    def _predicted(self, arch: Any) -> float:
        # One by one and rounded, so that the order of summation does not change the result.
        found = self.scale.inverse(self._process.predict(self._features([arch])))
        return float(f"{found[0]:.9e}")


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
