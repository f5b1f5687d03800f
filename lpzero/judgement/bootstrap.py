"""Bootstrap intervals of rho and tau, exact and without a loop over resamples.

A resample is a vector of counts c (how often each architecture was drawn). Ranks inside it are
a matrix product, rank_i = sum_j c_j [x_j < x_i] + (1 + sum_j c_j [x_j = x_i]) / 2, and tau-b is
a quotient of quadratic forms in c. Shapes: R resamples, n architectures.
"""

from __future__ import annotations

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
    """How often each architecture is drawn in each resample of n draws (R, n)."""
    draws = np.random.Generator(np.random.Philox(SEED)).integers(0, n, (resamples, n))
    flat = draws + n * np.arange(resamples)[:, np.newaxis]
    return np.bincount(flat.reshape(-1), minlength=n * resamples).reshape(-1, n).astype(np.float64)


def spearman_resampled(counts: FloatArray, x: FloatArray, y: FloatArray) -> FloatArray:
    """Rho of x and y (n,) in each resample (R,); 0 where a resample is constant."""
    centre = (len(x) + 1) / 2
    u, v = (_ranks_resampled(counts, z) - centre for z in (x, y))
    products = (counts * u * v).sum(axis=1)
    return bounded_ratio(
        products, np.sqrt((counts * u * u).sum(axis=1) * (counts * v * v).sum(axis=1))
    )


def kendall_resampled(counts: FloatArray, x: FloatArray, y: FloatArray) -> FloatArray:
    """Tau-b of x and y (n,) in each resample (R,); 0 where a resample is constant."""
    if len(x) > large_resamples.MANY:
        of_x, of_y = (large_resamples.differing_pairs(counts, z) for z in (x, y))
        both = large_resamples.concordance(counts, x, y)
        return bounded_ratio(both, np.sqrt(of_x * of_y))
    a, b = (np.sign(z[:, np.newaxis] - z) for z in (x, y))
    both, of_x, of_y = (((counts @ m) * counts).sum(axis=1) for m in (a * b, a * a, b * b))
    return bounded_ratio(both, np.sqrt(of_x * of_y))


def _ranks_resampled(counts: FloatArray, x: FloatArray) -> FloatArray:
    if len(x) > large_resamples.MANY:
        return large_resamples.ranks(counts, x)
    below = (x[:, np.newaxis] < x) + 0.5 * (x[:, np.newaxis] == x)
    ranks: FloatArray = counts @ below + 0.5
    return ranks
