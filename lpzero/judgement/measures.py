"""The three measures of scores: rho, rho given the parameters, rho within groups.

Campaigns and exhaustive runs compute these measures for many score vectors, on training or
validation rows. Scores are quantised once, and sorted once for all rows and once inside the groups.
Ranks are multiples of one half, so sums of their products are exact in any order.

Correlations on several tables (M of them) become one number, so that formulas can be compared:

regret   the lowest, over tables, of rho minus the best rho that the table's own search finds
fisher   the mean over tables of Fisher's z, as a correlation again
min      the lowest rho

With one table each of them is the rho itself. A formula has one sign for all tables: the one with
the larger number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lpzero.arrays import BoolArray, FloatArray, IntArray, LabelArray
from lpzero.errors import InputError
from lpzero.judgement.correlation import LEAST_IN_GROUP
from lpzero.judgement.ranks import (
    RankedGroups,
    batched_groups,
    centred,
    quantise_keys,
    rank,
    rank_targets,
)
from primitives.errors import did_you_mean

_ELEMENTS = 1 << 17


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
        both = np.stack([rank_targets(targets), rank(parameters)])
        self._all = RankedGroups([np.arange(self.n)], [both])
        t, g = centred(both)
        tg, *squares = (float(u @ v) for u, v in ((t, g), (t, t), (g, g)))
        self._rho_target_size = tg / np.sqrt(squares[0] * squares[1]) if all(squares) else 0.0
        ranked = []
        for label in np.unique(groups):
            rows = np.flatnonzero(groups == label)
            ranks = rank_targets(targets[rows])
            if len(rows) >= LEAST_IN_GROUP and np.ptp(ranks) > 0:
                ranked.append((rows, ranks[np.newaxis]))
        self._within = [
            RankedGroups(*(list(part) for part in zip(*some, strict=True)))
            for some in batched_groups(ranked, self.n)
        ]

    @property
    def n_within(self) -> int:
        """Architectures in groups that can be measured."""
        return sum(ranked.n for ranked in self._within)

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
        both, constant = self._all.rho(keys)
        (rho,), (rho_size,) = both
        left = (1 - rho_size * rho_size) * (1 - self._rho_target_size**2)
        rest = rho - rho_size * self._rho_target_size
        given = np.divide(rest, np.sqrt(left), out=np.zeros_like(rho), where=left > 1e-12)
        if not self.has_parameters:
            given = np.zeros(len(scores))
        within = np.zeros(len(scores))
        for ranked in self._within:
            for size, of_group in zip(ranked.sizes, ranked.rho(keys)[0][0], strict=True):
                within += size * of_group
        if self._within:
            within /= self.n_within
        return np.stack([rho, np.clip(given, -1, 1), within]), constant


_MOST = 1 - 1e-9  # correlations are cut at this before Fisher's z, which is infinite at 1


class Across:
    """How correlations (M, ...) become one number; larger is better.

    `best` (M,) are the best correlations of each table's own search, which the regret needs. With
    the tables' numbers of `rows` (M,) a regret is counted in standard errors, up to a factor: a
    correlation of few rows says less.
    """

    def __init__(
        self, name: str = "min", best: Sequence[float] = (), rows: Sequence[int] = ()
    ) -> None:
        assert name != "regret" or best, "the regret needs the best of each table"
        self.name, self._best = name, np.asarray(best, dtype=np.float64)
        self._per_error = np.sqrt(np.asarray(rows or [1] * len(best), dtype=np.float64))

    def value(self, rhos: FloatArray) -> FloatArray:
        """The number (...) that stands for correlations (M, ...)."""
        if len(rhos) == 1:
            return np.asarray(rhos[0])
        if self.name == "regret":
            shape = (len(rhos),) + (1,) * (rhos.ndim - 1)
            regrets = (rhos - self._best.reshape(shape)) * self._per_error.reshape(shape)
            return np.asarray(regrets.min(axis=0))
        if self.name == "fisher":
            z = np.arctanh(np.clip(rhos, -_MOST, _MOST))
            return np.asarray(np.tanh(z.mean(axis=0)))
        return np.asarray(rhos.min(axis=0))

    def signed(self, rhos: FloatArray) -> tuple[FloatArray, IntArray]:
        """The number (...) with the better sign of the scores, and that sign (...)."""
        plus, minus = self.value(rhos), self.value(0.0 - rhos)
        return np.maximum(plus, minus), np.where(minus > plus, -1, 1)


ONE_TABLE = Across()
