"""Average ranks of many score vectors at once, after rounding to six significant digits.

Scores are rounded first because float noise would break ties: it once changed a correlation by
0.016. Each score becomes an integer key; keys sort in the order of the scores, and are equal if the
six digits are equal. Integers sort fast: key and position are packed into one 64-bit word, so that
one sort gives both. Shapes: F score vectors (formulas), n architectures.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from lpzero.arrays import FloatArray, KeyArray
from lpzero.errors import FitnessError

DIGITS = 6
MOST_ARCHS = 1 << 20

_STEPS = 9 * 10 ** (DIGITS - 1)  # mantissas 100000 to 999999 of each decade
_FIRST_DECADE = -301
_DECADES = range(_FIRST_DECADE, 309)
# The decade in which each binary exponent's range starts; a power of ten may lie inside the range.
_STARTS = np.clip(
    np.floor((np.arange(2048) - 1023) * np.log10(2.0)).astype(np.int64) - _FIRST_DECADE,
    0,
    len(_DECADES) - 1,
)
_NEXT_POWERS = np.array([*(float(f"1e{e + 1}") for e in _DECADES[:-1]), np.inf])[_STARTS]
# Of each binary exponent two: of the decade in which its range starts, and of the next one.
_EITHER = np.minimum(_STARTS[:, np.newaxis] + [0, 1], len(_DECADES) - 1).reshape(-1)
_SCALES = np.array([float(f"1e{DIGITS - 1 - e}") for e in _DECADES])[_EITHER]
_BASES = _EITHER * float(_STEPS)


def quantise_keys(scores: FloatArray) -> KeyArray:
    """Integers in the order of the finite scores rounded to six significant digits; same shape.

    Below 1e-301, where scaling would overflow, fewer digits are kept.
    """
    size = np.abs(scores)
    exponent = size.view(np.int64) >> 52
    is_next = size >= _NEXT_POWERS.take(exponent)
    exponent *= 2
    exponent += is_next
    size *= _SCALES.take(exponent)
    np.rint(size, out=size)
    # A mantissa rounded up to 10^6 becomes the first step of the next decade.
    size += _BASES.take(exponent)
    keys: KeyArray = np.copysign(size, scores).astype(np.int64)
    return keys


def sort_keys(keys: KeyArray) -> tuple[KeyArray, KeyArray]:
    """The keys (F, n) in ascending order row by row, and the positions they came from."""
    n = keys.shape[1]
    bits = max(1, (n - 1).bit_length())
    packed = (keys << bits) | np.arange(n)
    packed.sort(axis=1)
    return packed >> bits, packed & ((1 << bits) - 1)


def sorted_ranks(keys: KeyArray) -> FloatArray:
    """Average ranks 1 to n of ascending keys (F, n): ties share the mean of their ranks."""
    n_rows, n = keys.shape
    is_new = np.ones((n_rows, n), dtype=np.bool_)
    np.not_equal(keys[:, 1:], keys[:, :-1], out=is_new[:, 1:])
    starts = is_new.reshape(-1).nonzero()[0]  # every row starts a run
    ends = np.append(starts[1:], n_rows * n)
    ranks = np.repeat((starts + ends + 1) / 2.0, ends - starts).reshape(n_rows, n)
    ranks -= (np.arange(n_rows) * float(n))[:, np.newaxis]
    return np.asarray(ranks)


def rank_many(scores: FloatArray) -> FloatArray:
    """Average ranks (F, n) of finite scores (F, n) rounded to six significant digits."""
    scores = np.ascontiguousarray(scores, dtype=np.float64)
    if not np.isfinite(scores).all():
        raise FitnessError("scores that are not finite have no ranks: leave those rows out")
    keys, positions = sort_keys(quantise_keys(scores))
    ranks = np.empty(scores.shape)
    np.put_along_axis(ranks, positions, sorted_ranks(keys), axis=1)
    return ranks


def rank(scores: FloatArray) -> FloatArray:
    """Average ranks (n,) of one vector of finite scores, rounded to six significant digits."""
    ranks: FloatArray = rank_many(np.asarray(scores)[np.newaxis])[0]
    return ranks


def rank_targets(targets: FloatArray) -> FloatArray:
    """Average ranks (n,) of finite targets, rounded to ten significant digits.

    Targets are often measured to more than six digits; ten digits remove only the float noise of
    averaging. Hidden test targets are NaN, so using them by accident raises FitnessError.
    """
    bad = np.flatnonzero(~np.isfinite(targets))
    if len(bad):
        raise FitnessError(
            f"target {bad[0]} is {targets[bad[0]]}, expected a finite number: "
            "judge rows whose targets are not hidden"
        )
    kept = _ranks_of(np.ascontiguousarray(targets, dtype=np.float64).tobytes())
    return np.array(kept)


@lru_cache(maxsize=64)  # the same parts of a table are ranked for every proxy and every measure
def _ranks_of(targets: bytes) -> FloatArray:
    """Average ranks (n,) of the float64 numbers in these bytes, rounded to ten digits."""
    rounded = np.array([float(f"{value:.9e}") for value in np.frombuffer(targets).tolist()])
    _, groups, counts = np.unique(rounded, return_inverse=True, return_counts=True)
    middles = np.cumsum(counts) - (counts - 1) / 2
    ranks: FloatArray = middles[groups.reshape(-1)]
    return ranks
