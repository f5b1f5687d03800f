"""One number from correlations on several tables, so that formulas can be compared across them.

regret   the lowest, over tables, of rho minus the best rho that the table's own search finds
fisher   the mean over tables of Fisher's z, as a correlation again
min      the lowest rho

With one table each of them is the rho itself. A formula has one sign for all tables: the one with
the larger number. Shapes: M tables.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lpzero.arrays import FloatArray, IntArray

_MOST = 1 - 1e-9  # correlations are cut at this before Fisher's z, which is infinite at 1


class Across:
    """How correlations (M, ...) become one number; larger is better.

    `best` (M,) are the best correlations of each table's own search, which the regret needs.
    """

    def __init__(self, name: str = "min", best: Sequence[float] = ()) -> None:
        assert name != "regret" or best, "the regret needs the best of each table"
        self.name, self._best = name, np.asarray(best, dtype=np.float64)

    def value(self, rhos: FloatArray) -> FloatArray:
        """The number (...) that stands for correlations (M, ...)."""
        if len(rhos) == 1:
            return np.asarray(rhos[0])
        if self.name == "regret":
            shape = (len(rhos),) + (1,) * (rhos.ndim - 1)
            return np.asarray((rhos - self._best.reshape(shape)).min(axis=0))
        if self.name == "fisher":
            z = np.arctanh(np.clip(rhos, -_MOST, _MOST))
            return np.asarray(np.tanh(z.mean(axis=0)))
        return np.asarray(rhos.min(axis=0))

    def signed(self, rhos: FloatArray) -> tuple[FloatArray, IntArray]:
        """The number (...) with the better sign of the scores, and that sign (...)."""
        plus, minus = self.value(rhos), self.value(0.0 - rhos)
        return np.maximum(plus, minus), np.where(minus > plus, -1, 1)


ONE_TABLE = Across()
