"""Choosing among formulas that fit: the best on train and valid whose scores repeat.

A formula's scores repeat if networks with other weights on another batch rank the architectures
alike: no target is needed for that, so all rows count. The rank mean of the best that repeat is an
ensemble, a proxy like any other. Shapes: K formulas, A architectures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lpzero.arrays import FloatArray, IntArray
from lpzero.judgement.correlation import spearman_many
from lpzero.judgement.ranks import rank_many, rank_targets
from lpzero.judgement.stability import agreement

STABLE = 0.998  # the least rank correlation of scores from two seeds
MEMBERS = 20  # of an ensemble


@dataclass(frozen=True, slots=True, eq=False)
class StableChoice:
    """Formulas by index, best first: those that may be chosen, with rho on the rows and stability.

    `signs` (K,) make larger scores better on the rows; `stability` (K,) is NaN where it was not
    measured.
    """

    order: IntArray
    rho: FloatArray
    signs: FloatArray
    stability: FloatArray
    threshold: float

    @property
    def best(self) -> int:
        """The formula to report."""
        return int(self.order[0])

    def members(self, n: int = MEMBERS) -> IntArray:
        """The formulas of the ensemble."""
        return self.order[:n]


def choose(
    scores: FloatArray,
    repeated: FloatArray | None,
    targets: FloatArray,
    rows: IntArray,
    complexity: Sequence[int],
    threshold: float = STABLE,
) -> StableChoice:
    """The order of formulas with scores (K, A) by rho on `rows`, the stable ones first.

    `repeated` (K, A) are the scores with other seeds; without them every formula counts as stable.
    Of equal rho the simpler formula comes first. If no formula is stable the most stable lead.
    """
    found = spearman_many(scores[:, rows], rank_targets(targets[rows])).values
    signs = np.where(found < 0, -1.0, 1.0)
    rho = np.abs(np.where(np.isfinite(found), found, 0.0))
    stability = np.full(len(scores), np.nan)
    if repeated is not None:
        stability = agreement(scores, repeated)
    steady = None if repeated is None else stability
    return StableChoice(
        order_of(rho, steady, complexity, threshold), rho, signs, stability, threshold
    )


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


def ensemble_scores(scores: FloatArray, choice: StableChoice, n: int = MEMBERS) -> FloatArray:
    """The mean rank (A,) of the ensemble's members."""
    members = choice.members(n)
    mean: FloatArray = rank_many(choice.signs[members, np.newaxis] * scores[members]).mean(axis=0)
    return mean
