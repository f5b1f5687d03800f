"""Bootstrap intervals of rho and tau, exact and without a loop over resamples.

A resample is a vector of counts c (how often each architecture was drawn). Ranks inside it are
rank_i = sum_j c_j [x_j < x_i] + (1 + sum_j c_j [x_j = x_i]) / 2, and tau-b is a quotient of
quadratic forms in c. Everything is a sum of whole numbers and halves, exact in any order. Shapes: R
resamples, n architectures.

The difference of two rhos has a paired interval: both score vectors are ranked in the same
resamples, so what they share cancels, and the interval says whether one is ahead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.judgement import large_resamples
from lpzero.judgement.correlation import bounded_ratio, spearman
from lpzero.judgement.ranks import rank, rank_targets

Interval = tuple[float, float]

# One seed for every command, so that the same scores on the same rows get the same interval.
SEED = 0
RESAMPLES = 1000
LEVEL = 0.95
_MOST_DRAWS = 10_000_000  # more than 10,000 rows are resampled less often: their interval is narrow
_LEAST_RESAMPLES = 200
_ELEMENTS = 1 << 24  # of an array (R, n) that is computed at a time


class Intervals(NamedTuple):
    """95% percentile intervals of rho and tau."""

    rho: Interval
    tau: Interval


def intervals(scores: FloatArray, targets: FloatArray) -> Intervals:
    """The bootstrap intervals of one score vector (n,) against the targets (n,)."""
    counts = draw_counts(len(scores), RESAMPLES)
    x, y = rank(scores), rank_targets(targets)
    rho, tau = (np.concatenate(parts) for parts in zip(*_correlations(counts, x, y), strict=True))
    return Intervals(percentile_interval(rho), percentile_interval(tau))


class _Correlations(NamedTuple):
    """Of some resamples (R,)."""

    rho: FloatArray
    tau: FloatArray


def _correlations(
    counts: FloatArray, x: FloatArray, y: FloatArray, with_tau: bool = True
) -> Iterator[_Correlations]:
    """Rho and tau of all resamples; of many architectures, of a bounded part at a time."""
    step = len(counts)
    if len(x) > large_resamples.MANY:
        step = min(step, max(1, _ELEMENTS // len(x)))
    for start in range(0, len(counts), step):
        part = counts if step == len(counts) else counts[start : start + step]
        of_x, of_y = _resampled(part, x), _of_targets(part, y)
        tau = _kendall(part, x, y, of_x, of_y) if with_tau else np.empty(0)
        yield _Correlations(_spearman(part, of_x, of_y), tau)


def percentile_interval(values: FloatArray) -> Interval:
    """The 95% interval of values (R,), one per resample."""
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def draw_counts(n: int, resamples: int) -> FloatArray:
    """How often each architecture is drawn in each resample of n draws (R, n); read-only.

    Of many architectures fewer resamples are drawn, so that time and memory are bounded.
    """
    resamples = min(resamples, max(_LEAST_RESAMPLES, _MOST_DRAWS // max(1, n)))
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
    return np.concatenate([part.rho for part in _correlations(counts, x, y, with_tau=False)])


def _spearman(counts: FloatArray, of_x: _Resampled, of_y: _Resampled) -> FloatArray:
    products = (counts * of_x.ranks * of_y.ranks).sum(axis=1)
    return bounded_ratio(products, np.sqrt(of_x.squares * of_y.squares))


def _kendall(
    counts: FloatArray, x: FloatArray, y: FloatArray, of_x: _Resampled, of_y: _Resampled
) -> FloatArray:
    if len(x) > large_resamples.MANY:
        both = large_resamples.concordance(counts, x, y)
    else:
        # Whole numbers of at most n, which float32 holds exactly too, in half the time.
        a, b = (np.sign(z[:, np.newaxis] - z).astype(np.float32) for z in (x, y))
        both = ((counts.astype(np.float32) @ (a * b)) * counts).sum(axis=1)
    return bounded_ratio(both, np.sqrt(of_x.pairs * of_y.pairs))


class _Resampled(NamedTuple):
    """Of a vector (n,) in each resample: ranks (R, n) less their mean, sum of their squares (R,),
    and the ordered pairs of draws that differ (R,)."""

    ranks: FloatArray
    squares: FloatArray
    pairs: FloatArray


def _resampled(counts: FloatArray, x: FloatArray) -> _Resampled:
    plain, pairs = large_resamples.ranks_and_pairs(counts, x)
    ranks = plain - (len(x) + 1) / 2
    return _Resampled(ranks, (counts * ranks * ranks).sum(axis=1), pairs)


_known_targets: dict[tuple[int, bytes], _Resampled] = {}
_MOST_TARGETS = 4


def _of_targets(counts: FloatArray, y: FloatArray) -> _Resampled:
    """The same of targets, of which there are few: every proxy of a table is judged on them."""
    if counts.flags.writeable or len(y) > large_resamples.MANY:
        return _resampled(counts, y)
    key = len(counts), y.tobytes()
    if key not in _known_targets:
        if len(_known_targets) == _MOST_TARGETS:
            _known_targets.pop(next(iter(_known_targets)))
        _known_targets[key] = _resampled(counts, y)
    return _known_targets[key]


class Outcome(Enum):
    """What a paired difference says."""

    AHEAD = "ahead"  # the whole interval is above 0
    NOT_SETTLED = "not settled"  # above 0, but the interval holds 0
    NOT_AHEAD = "not ahead"  # 0 or below


@dataclass(frozen=True, slots=True)
class Difference:
    """rho(a) - rho(b) on n architectures, its 95% interval, the share of resamples above 0."""

    n: int
    rho: float
    rho_ci: Interval
    share_above: float

    @property
    def outcome(self) -> Outcome:
        """Whether a is ahead of b."""
        if self.rho <= 0:
            return Outcome.NOT_AHEAD
        return Outcome.AHEAD if self.rho_ci[0] > 0 else Outcome.NOT_SETTLED

    def to_json(self) -> dict[str, Any]:
        """The fields and the outcome as plain JSON values."""
        return asdict(self) | {"rho_ci": list(self.rho_ci), "outcome": self.outcome.value}


def paired_difference(a: FloatArray, b: FloatArray, targets: FloatArray) -> Difference:
    """The difference of the rhos of two finite score vectors (n,) with the targets (n,)."""
    counts = draw_counts(len(targets), RESAMPLES)
    y = rank_targets(targets)
    drawn = spearman_resampled(counts, rank(a), y) - spearman_resampled(counts, rank(b), y)
    return Difference(
        n=len(targets),
        rho=spearman(np.asarray(a), targets) - spearman(np.asarray(b), targets),
        rho_ci=percentile_interval(drawn),
        share_above=float(np.mean(drawn > 0)),
    )


def partial_interval(scores: FloatArray, targets: FloatArray, given: FloatArray) -> Interval:
    """The interval of the partial rho of scores and targets given a third vector, all (n,).

    The three correlations are of the same resamples. A resample in which the third vector
    determines the scores or the targets counts as 0, as in `partial_spearman`.
    """
    counts = draw_counts(len(targets), RESAMPLES)
    s, t, g = rank(scores), rank_targets(targets), rank(given)
    st, gt, sg = (spearman_resampled(counts, *pair) for pair in ((s, t), (g, t), (s, g)))
    left = (1 - sg * sg) * (1 - gt * gt)
    partial = np.divide(st - sg * gt, np.sqrt(left), out=np.zeros_like(st), where=left > 1e-12)
    return percentile_interval(np.clip(partial, -1, 1))
