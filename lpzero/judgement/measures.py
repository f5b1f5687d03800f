"""The three measures of scores: rho, rho given the parameters, rho within groups.

Campaigns and exhaustive runs compute these measures for many score vectors, on training or
validation rows. Scores are quantised once, and sorted once for all rows and once inside the groups.
Ranks are multiples of one half, so sums of their products are exact in any order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lpzero.arrays import BoolArray, FloatArray, IntArray, KeyArray, LabelArray
from lpzero.errors import InputError
from lpzero.judgement.correlation import LEAST_IN_GROUP
from lpzero.judgement.ranks import quantise_keys, rank, rank_targets, sort_keys, sorted_ranks
from primitives.errors import did_you_mean

_ELEMENTS = 1 << 15


class Measures(NamedTuple):
    """The measures of one score vector; 0 for what the table has no parameters or groups for."""

    rho: float
    rho_given_params: float
    rho_within: float

    def negated(self) -> Measures:
        """The measures of the negated scores."""
        return Measures(*(0.0 - value for value in self))  # not -value: no negative zeros


# The names of the measures in JSON, journals, halls of fame and settings.
MEASURES = Measures._fields
RHO, RHO_GIVEN_PARAMS, RHO_WITHIN = MEASURES
# Abbreviations that a user may write.
_SHORT = {"given-params": RHO_GIVEN_PARAMS, "partial": RHO_GIVEN_PARAMS, "within": RHO_WITHIN}


def read_measure(word: str) -> str:
    """The measure's name from the user's spelling: with hyphens or underscores, or abbreviated."""
    words = {name.replace("_", "-"): name for name in MEASURES} | _SHORT
    plain = str(word).strip().replace("_", "-")
    if plain not in words:
        raise InputError(f"unknown measure {word!r}; {did_you_mean(plain, words)}")
    return words[plain]


class Measured(NamedTuple):
    """values: (measures, F), NaN for vectors that are not finite; flags (F,)."""

    values: FloatArray
    constant: BoolArray
    non_finite: BoolArray


class RankMeasures:
    """Measures score vectors against targets (n,), parameters and group labels (n,), if any."""

    def __init__(
        self, targets: FloatArray, parameters: FloatArray | None, groups: LabelArray | None
    ) -> None:
        self.n, self.has_parameters = len(targets), parameters is not None
        parameters = np.ones(self.n) if parameters is None else parameters
        groups = np.arange(self.n) if groups is None else groups
        self._target_and_size = _centred(np.stack([rank_targets(targets), rank(parameters)]))
        t, g = self._target_and_size
        tg, *squares = (float(u @ v) for u, v in ((t, g), (t, t), (g, g)))
        self._rho_target_size = tg / np.sqrt(squares[0] * squares[1]) if all(squares) else 0.0
        self._groups: list[tuple[IntArray, FloatArray]] = []
        for label in np.unique(groups):
            rows = np.flatnonzero(groups == label)
            ranks = rank_targets(targets[rows])
            if len(rows) >= LEAST_IN_GROUP and np.ptp(ranks) > 0:
                self._groups.append((rows, _centred(ranks[np.newaxis])))

    @property
    def n_within(self) -> int:
        """Architectures in groups that can be measured."""
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
            chunk = np.where(bad[:, np.newaxis], 0.0, scores[part]) if bad.any() else scores[part]
            values[:, part], constant[part] = self._measure(chunk)
            values[:, part][:, bad] = np.nan
            non_finite[part], constant[part] = bad, constant[part] & ~bad
        return Measured(values, constant, non_finite)

    def _measure(self, scores: FloatArray) -> tuple[FloatArray, BoolArray]:
        keys = quantise_keys(np.ascontiguousarray(scores))
        both, constant = _rho(keys, self._target_and_size)
        rho, rho_size = both
        left = (1 - rho_size * rho_size) * (1 - self._rho_target_size**2)
        rest = rho - rho_size * self._rho_target_size
        given = np.divide(rest, np.sqrt(left), out=np.zeros_like(rho), where=left > 1e-12)
        if not self.has_parameters:
            given = np.zeros(len(scores))
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
        norms = size * np.sqrt(target @ target)
        products = np.einsum("fn,fn->f", ranks, target.take(positions))
        np.divide(products, norms, out=row, where=norms > 0)
    return np.clip(rho, -1.0, 1.0), np.asarray(ascending[:, 0] == ascending[:, -1])
