"""Choosing among formulas that fit: the best on train and valid whose scores repeat.

A formula's scores repeat if networks with other weights on another batch rank the architectures
alike: no target is needed for that, so all rows count. The rank mean of the best that repeat is an
ensemble, a proxy like any other. Shapes: K formulas, A architectures.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lpzero.arrays import FloatArray, IntArray
from lpzero.judgement.ranks import rank_many

STABLE = 0.998  # the least rank correlation of scores from two seeds
MEMBERS = 20  # of an ensemble


def order_of(
    rho: FloatArray, stability: FloatArray | None, complexity: Sequence[int], threshold: float
) -> IntArray:
    """The formulas that may be chosen, best first: stable ones by rho, the simpler of equals first.

    If no formula is stable the most stable one remains.
    """
    is_stable = np.ones(len(rho), dtype=np.bool_)
    if stability is not None:
        is_stable = stability >= min(threshold, float(stability.max()))
    order = np.lexsort((np.asarray(complexity), -np.round(rho, 10), ~is_stable))
    return np.asarray(order[: int(is_stable.sum())])


def rank_mean(scores: FloatArray) -> FloatArray:
    """The score (A,) of an ensemble: the mean rank over its members' scores (K, A)."""
    mean: FloatArray = rank_many(scores).mean(axis=0)
    return mean
