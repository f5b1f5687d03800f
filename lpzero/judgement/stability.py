"""Whether scores repeat: rank correlations of the same proxy over other weights and batches.

No target is needed, so it can be measured on all rows before anything is chosen.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.judgement.correlation import spearman_many
from lpzero.judgement.ranks import rank, rank_many


@dataclass(frozen=True, slots=True)
class Stability:
    """Median and least rank correlation of a proxy's scores with those of `n` other seeds."""

    n: int
    median: float
    least: float

    def to_json(self) -> dict[str, Any]:
        """The fields as plain JSON values."""
        return asdict(self)


def stability(scores: FloatArray, others: FloatArray) -> Stability:
    """How far scores (n,) repeat in others (seeds, n); 0 without finite scores on either side."""
    if not np.isfinite(scores).all():
        return Stability(len(others), 0.0, 0.0)
    rhos = spearman_many(np.atleast_2d(others), rank(scores))
    values = np.where(rhos.non_finite, 0.0, rhos.values)
    return Stability(len(values), float(np.median(values)), float(values.min()))


def agreement(scores: FloatArray, repeated: FloatArray) -> FloatArray:
    """The rank correlation (K,) of each row of scores (K, A) with the same row of `repeated`.

    Rows that are not finite or constant have 0.
    """
    finite = np.isfinite(scores).all(axis=1) & np.isfinite(repeated).all(axis=1)
    result = np.zeros(len(scores))
    if finite.any():
        first, second = rank_many(scores[finite]), rank_many(repeated[finite])
        first, second = (x - x.mean(axis=1, keepdims=True) for x in (first, second))
        size = np.sqrt((first**2).sum(axis=1) * (second**2).sum(axis=1))
        result[finite] = np.divide(
            (first * second).sum(axis=1), size, out=np.zeros(len(first)), where=size > 0
        )
    return result
