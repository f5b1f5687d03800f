"""Spearman's rho of many score vectors inside groups of rows, all groups in one sort.

A score becomes one 64-bit word: its group, its key (`lpzero.judgement.ranks`), its position. After
sorting, each group occupies the same columns of every vector, and equal scores of a group are
neighbours. Ranks are multiples of one half, so sums of their products are exact in any order.
Shapes: F score vectors, n rows of all groups together, K ranked targets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TypeVar

import numpy as np

from lpzero.arrays import BoolArray, FloatArray, IntArray, KeyArray

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
        self._targets = np.concatenate([centred(found) for found in ranks], axis=1)
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
