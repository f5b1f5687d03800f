"""Average ranks of many score vectors at once, after rounding to six significant digits.

Scores are rounded first because float noise would break ties: it once changed a correlation by
0.016. Each score becomes an integer key; keys sort in the order of the scores, and are equal if the
six digits are equal. Integers sort fast: key and position are packed into one 64-bit word, so that
one sort gives both. For ranks inside groups the word begins with the group: after sorting, each
group occupies the same columns of every vector, and equal scores of a group are neighbours. Shapes:
F score vectors (formulas), n architectures, K ranked targets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TypeVar

import numpy as np

from lpzero.arrays import BoolArray, FloatArray, IntArray, KeyArray
from lpzero.errors import FitnessError

DIGITS = 6
MOST_ARCHS = 1 << 20

_STEPS = 9 * 10 ** (DIGITS - 1)  # mantissas 100000 to 999999 of each decade
_FIRST_DECADE = -324
# Below it, scaling to six digits would overflow: such scores are scaled in two steps.
_TINY_EXPONENT, _TENS = 24, 300  # the exponent of 2^-999 as it is stored; a power of ten
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
_SCALES = np.array([float(f"1e{min(DIGITS - 1 - e, 308)}") for e in _DECADES])[_EITHER]
_BASES = _EITHER * float(_STEPS)
_BASES[: 2 * _TINY_EXPONENT] = 0.0  # of zeros alone


def quantise_keys(scores: FloatArray) -> KeyArray:
    """Integers in the order of the finite scores rounded to six significant digits; same shape."""
    size = np.abs(scores)
    exponent = size.view(np.int64) >> 52
    if exponent.min(initial=_TINY_EXPONENT) < _TINY_EXPONENT:
        is_tiny = (exponent < _TINY_EXPONENT) & (size > 0)
        if is_tiny.any():
            scaled = quantise_keys(size[is_tiny] * 10.0**_TENS) - _TENS * _STEPS
            every = quantise_keys(np.where(is_tiny, 0.0, scores))
            every[is_tiny] = np.copysign(scaled, scores[is_tiny])
            return every
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


# Two scores whose bits, read as integers, are this far apart differ in their first six digits.
_APART = int(2e-5 * 2**52)


def sorted_positions(scores: FloatArray) -> tuple[IntArray, IntArray, IntArray]:
    """The positions (F, n) of finite scores (F, n) in ascending order, and their runs of ties.

    Scores tie if their six digits are equal. Runs of ties are given as first places and lengths
    (runs,) in the positions as one line. Rounding keeps the order, so that the scores' own bits are
    sorted, without being rounded; only neighbours that are nearly equal are rounded.
    """
    n_rows, n = scores.shape
    bits = max(1, (n - 1).bit_length())
    mask = (1 << bits) - 1
    words = scores.view(np.int64) >> 63
    words &= np.iinfo(np.int64).max
    words ^= scores.view(np.int64)  # in the order of the scores, negative ones too
    words &= ~mask
    words |= np.arange(n)
    words.sort(axis=1)
    positions = words & mask
    # A difference that overflows only has two scores rounded that need not be.
    near = np.zeros((n_rows, n), dtype=np.bool_)
    np.less(words[:, 1:] - words[:, :-1], _APART + 2 * mask, out=near[:, 1:])
    after = near.reshape(-1).nonzero()[0]
    rows = after // n
    line = positions.reshape(-1)
    keys = [quantise_keys(scores[rows, line[places]]) for places in (after - 1, after)]
    if (keys[1] < keys[0]).any():  # differ in the bits that made room for the position, and in key
        sorted_keys, positions = sort_keys(quantise_keys(scores))
        tied = np.zeros((n_rows, n), dtype=np.bool_)
        np.equal(sorted_keys[:, 1:], sorted_keys[:, :-1], out=tied[:, 1:])
        after = tied.reshape(-1).nonzero()[0]
    else:
        after = after[keys[0] == keys[1]]
    starts = np.flatnonzero(np.diff(after, prepend=-2) != 1)
    lengths = np.diff(starts, append=len(after)) + 1
    return positions, after[starts] - 1, lengths


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


_KEY_BITS = 31  # of a key plus _LIFT, which makes it non-negative
_LIFT = 1 << 30
_WORD_BITS = 63
T = TypeVar("T")


class RankedGroups:
    """Groups of rows, and the ranks (K, rows) of their targets in each group."""

    def __init__(self, groups: Sequence[IntArray], ranks: Sequence[FloatArray]) -> None:
        self.sizes = [len(rows) for rows in groups]
        self.n = sum(self.sizes)
        bounds = np.cumsum([0, *self.sizes])
        self._columns = [slice(a, b) for a, b in pairwise(bounds)]
        self._rows = np.concatenate(list(groups))
        self._is_in_order = bool((self._rows == np.arange(self.n)).all())
        self._bits = _position_bits(self.n)
        number = np.repeat(np.arange(len(groups)), self.sizes)
        self._tags = (number << (_KEY_BITS + self._bits)) | np.arange(self.n)
        self._tags += _LIFT << self._bits
        # The rank of each column in its group, less the middle of the group.
        middles = np.repeat(bounds[:-1] + np.array(self.sizes) / 2, self.sizes)
        self._untied = np.arange(self.n) + 0.5 - middles
        self._targets = np.concatenate([centred(of_group) for of_group in ranks], axis=1)
        self._norms = [
            np.sqrt([target @ target for target in self._targets[:, columns]])
            for columns in self._columns
        ]

    def rho(self, keys: KeyArray) -> tuple[FloatArray, BoolArray]:
        """Rho (K, groups, F) of quantised scores (F, all rows); which F are constant everywhere."""
        is_everything = self._is_in_order and self.n == keys.shape[1]
        chosen = keys if is_everything else keys.take(self._rows, axis=1)
        words = (chosen << self._bits) + self._tags
        words.sort(axis=1)
        mask = (1 << self._bits) - 1
        ranks = self._ranks(words, mask)
        positions = words & mask
        targets = [target.take(positions) for target in self._targets]
        rho = np.zeros((len(targets), len(self._columns), len(keys)))
        for group, columns in enumerate(self._columns):
            part = ranks[:, columns]
            size = np.sqrt(np.einsum("fn,fn->f", part, part))
            for row, norm, target in zip(rho[:, group], self._norms[group], targets, strict=True):
                norms = size * norm
                products = np.einsum("fn,fn->f", part, target[:, columns])
                np.divide(products, norms, out=row, where=norms > 0)
        is_constant = words[:, 0] >> self._bits == words[:, -1] >> self._bits
        return np.clip(rho, -1.0, 1.0), np.asarray(is_constant)

    def _ranks(self, words: KeyArray, mask: int) -> FloatArray:
        """Centred average ranks (F, n) of sorted words: ties share the mean of their ranks."""
        n_vectors, n = words.shape
        is_tied = np.zeros((n_vectors, n), dtype=np.bool_)  # with the word before
        np.less_equal(words[:, 1:] ^ words[:, :-1], mask, out=is_tied[:, 1:])
        ranks = np.empty((n_vectors, n))
        ranks[:] = self._untied
        tied = is_tied.reshape(-1).nonzero()[0]
        if not len(tied):
            return ranks
        # Of most formulas few scores are tied, so only these are corrected.
        starts_run = np.empty(len(tied), dtype=np.bool_)
        starts_run[0] = True
        np.greater(np.diff(tied), 1, out=starts_run[1:])
        # A run begins with the word that its first tied one is tied to.
        flat, firsts = ranks.reshape(-1), tied[starts_run] - 1
        lengths = np.diff(starts_run.nonzero()[0], append=len(tied)) + 1
        middles = flat[firsts] + (lengths - 1) * 0.5
        flat[firsts] = middles
        flat[tied] = np.repeat(middles, lengths - 1)
        return ranks


def centred(ranks: FloatArray) -> FloatArray:
    """Average ranks (..., n) minus their mean, which is always (n + 1) / 2."""
    return np.asarray(ranks - (ranks.shape[-1] + 1) / 2)


def batched_groups(groups: Sequence[T], n: int) -> Iterator[Sequence[T]]:
    """The groups of n rows in as few parts as the words have room for."""
    most = 1 << (_WORD_BITS - _KEY_BITS - _position_bits(n))
    for start in range(0, len(groups), most):
        yield groups[start : start + most]


def _position_bits(n: int) -> int:
    return max(1, (n - 1).bit_length())
