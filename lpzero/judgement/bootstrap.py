"""Bootstrap intervals of rho and tau, exact and without a loop over resamples.

A resample is a vector of counts c (how often each architecture was drawn). Ranks inside it are
rank_i = sum_j c_j [x_j < x_i] + (1 + sum_j c_j [x_j = x_i]) / 2, and tau-b is a quotient of
quadratic forms in c. Everything is a sum of whole numbers and halves, exact in any order. Shapes: R
resamples, n architectures.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.judgement import large_resamples
from lpzero.judgement.correlation import bounded_ratio
from lpzero.judgement.ranks import rank, rank_targets

Interval = tuple[float, float]

# One seed for every command, so that the same scores on the same rows get the same interval.
SEED = 0
RESAMPLES = 1000
LEVEL = 0.95
_ELEMENTS = 1 << 21  # of an array (R, n) that is computed at a time


class Intervals(NamedTuple):
    """95% percentile intervals of rho and tau."""

    rho: Interval
    tau: Interval


def intervals(scores: FloatArray, targets: FloatArray) -> Intervals:
    """The bootstrap intervals of one score vector (n,) against the targets (n,)."""
    counts = draw_counts(len(scores), RESAMPLES)
    x, y = rank(scores), rank_targets(targets)
    return Intervals(
        percentile_interval(spearman_resampled(counts, x, y)),
        percentile_interval(kendall_resampled(counts, x, y)),
    )


def percentile_interval(values: FloatArray) -> Interval:
    """The 95% interval of values (R,), one per resample."""
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def draw_counts(n: int, resamples: int) -> FloatArray:
    """How often each architecture is drawn in each resample of n draws (R, n); read-only."""
    keeps = n <= large_resamples.MANY
    return _draw_again(n, resamples) if keeps else _draw(n, resamples)


def _draw(n: int, resamples: int) -> FloatArray:
    generator = np.random.Generator(np.random.Philox(SEED))
    drawn = np.empty((resamples, n))
    for counts in drawn:  # one resample at a time: the same numbers, without four such arrays
        counts[:] = np.bincount(generator.integers(0, n, n), minlength=n)
    drawn.flags.writeable = False
    return drawn


_draw_again = lru_cache(maxsize=4)(_draw)  # one seed: a table's parts are drawn alike every time


def spearman_resampled(counts: FloatArray, x: FloatArray, y: FloatArray) -> FloatArray:
    """Rho of x and y (n,) in each resample (R,); 0 where a resample is constant."""
    if len(x) > large_resamples.MANY and len(counts) * len(x) > max(_ELEMENTS, len(x)):
        step = max(1, _ELEMENTS // counts.shape[1])
        parts = (counts[start : start + step] for start in range(0, len(counts), step))
        return np.concatenate([spearman_resampled(part, x, y) for part in parts])
    u, squares_of_u = _ranks_resampled(counts, x)
    v, squares_of_v = _of_targets(counts, y)
    products = (counts * u * v).sum(axis=1)
    return bounded_ratio(products, np.sqrt(squares_of_u * squares_of_v))


def kendall_resampled(counts: FloatArray, x: FloatArray, y: FloatArray) -> FloatArray:
    """Tau-b of x and y (n,) in each resample (R,); 0 where a resample is constant."""
    of_x, of_y = (large_resamples.differing_pairs(counts, z) for z in (x, y))
    if len(x) > large_resamples.MANY:
        both = large_resamples.concordance(counts, x, y)
    else:
        a, b = (np.sign(z[:, np.newaxis] - z) for z in (x, y))
        both = ((counts @ (a * b)) * counts).sum(axis=1)
    return bounded_ratio(both, np.sqrt(of_x * of_y))


def _ranks_resampled(counts: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The ranks (R, n) less their mean in each resample, and the sum of their squares (R,)."""
    ranks = large_resamples.ranks(counts, x) - (len(x) + 1) / 2
    return ranks, (counts * ranks * ranks).sum(axis=1)


_known_targets: dict[tuple[int, bytes], tuple[FloatArray, FloatArray]] = {}
_MOST_TARGETS = 4


def _of_targets(counts: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The same of targets, of which there are few: every proxy of a table is judged on them."""
    if counts.flags.writeable or len(y) > large_resamples.MANY:
        return _ranks_resampled(counts, y)
    key = len(counts), y.tobytes()
    if key not in _known_targets:
        if len(_known_targets) == _MOST_TARGETS:
            _known_targets.pop(next(iter(_known_targets)))
        _known_targets[key] = _ranks_resampled(counts, y)
    return _known_targets[key]
