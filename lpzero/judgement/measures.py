"""Three measures of many score vectors: rho, rho given the parameters, rho within groups.

Scores are quantised once and sorted once for all rows and once inside the groups. Ranks are
multiples of a half, so that sums of their products are exact, in whatever order they are added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lpzero.arrays import BoolArray, FloatArray, IntArray, KeyArray
from lpzero.judgement import counters
from lpzero.judgement.ranks import quantise_keys, rank, rank_targets, sort_keys, sorted_ranks

if TYPE_CHECKING:
    from spaces.tables import Table

MEASURES = ("rho", "given-params", "within")
_LEAST = 5  # architectures in a group that tells anything
_ELEMENTS = 1 << 15


class Measured(NamedTuple):
    """values: (measures, F), NaN for vectors that are not finite; flags (F,)."""

    values: FloatArray
    constant: BoolArray
    non_finite: BoolArray


class RankMeasures:
    """Targets (n,), parameters (n,) and group labels (n,) to measure score vectors against."""

    def __init__(self, targets: FloatArray, parameters: FloatArray, groups: IntArray) -> None:
        self.n = len(targets)
        self._both = _centred(np.stack([rank_targets(targets), rank(parameters)]))
        t, g = self._both
        above, *below = (float(u @ v) for u, v in ((t, g), (t, t), (g, g)))
        self._target_given = above / np.sqrt(below[0] * below[1]) if all(below) else 0.0
        self._groups: list[tuple[IntArray, FloatArray]] = []
        for label in np.unique(groups):
            rows = np.flatnonzero(groups == label)
            ranks = rank_targets(targets[rows])
            if len(rows) >= _LEAST and np.ptp(ranks) > 0:
                self._groups.append((rows, _centred(ranks[np.newaxis])))

    @classmethod
    def of(cls, table: Table, rows: IntArray) -> RankMeasures:
        """Those of a table's rows, with its parameters and groups of equal depth and width."""
        parameters = counters.score("parameters", table)[rows]
        return cls(table.targets[rows], parameters, table.groups("depth-width")[rows])

    @property
    def n_within(self) -> int:
        """Architectures in groups that tell anything."""
        return sum(len(rows) for rows, _ in self._groups)

    def measure(self, scores: FloatArray) -> Measured:
        """The measures of each row of scores (F, n)."""
        values = np.zeros((len(MEASURES), len(scores)))
        constant, non_finite = (np.zeros(len(scores), dtype=np.bool_) for _ in range(2))
        step = max(1, _ELEMENTS // self.n)
        for start in range(0, len(scores), step):
            part = slice(start, start + step)
            with np.errstate(invalid="ignore", over="ignore"):
                suspects = ~np.isfinite(scores[part].sum(axis=1))
            bad = suspects & ~np.isfinite(scores[part]).all(axis=1)
            block = np.where(bad[:, np.newaxis], 0.0, scores[part]) if bad.any() else scores[part]
            values[:, part], constant[part] = self._measure(block)
            values[:, part][:, bad] = np.nan
            non_finite[part], constant[part] = bad, constant[part] & ~bad
        return Measured(values, constant, non_finite)

    def _measure(self, scores: FloatArray) -> tuple[FloatArray, BoolArray]:
        keys = quantise_keys(np.ascontiguousarray(scores))
        both, constant = _rho(keys, self._both)
        rho, by_size = both
        left = (1 - by_size * by_size) * (1 - self._target_given**2)
        rest = rho - by_size * self._target_given
        given = np.divide(rest, np.sqrt(left), out=np.zeros_like(rho), where=left > 1e-12)
        within = np.zeros(len(scores))
        for rows, targets in self._groups:
            within += len(rows) * _rho(keys[:, rows], targets)[0][0]
        if self._groups:
            within /= self.n_within
        return np.stack([rho, np.clip(given, -1, 1), within]), constant


def _centred(ranks: FloatArray) -> FloatArray:
    """Average ranks (..., n) minus their mean, which is always (n + 1) / 2."""
    return np.asarray(ranks - (ranks.shape[-1] + 1) / 2)


def _rho(keys: KeyArray, targets: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Rho (K, F) of quantised scores (F, n) with centred ranks (K, n); which F are constant."""
    ascending, positions = sort_keys(keys)
    ranks = _centred(sorted_ranks(ascending))
    size = np.sqrt(np.einsum("fn,fn->f", ranks, ranks))
    rho = np.zeros((len(targets), len(keys)))
    for row, target in zip(rho, targets, strict=True):
        below = size * np.sqrt(target @ target)
        products = np.einsum("fn,fn->f", ranks, target.take(positions))
        np.divide(products, below, out=row, where=below > 0)
    return np.clip(rho, -1.0, 1.0), np.asarray(ascending[:, 0] == ascending[:, -1])
