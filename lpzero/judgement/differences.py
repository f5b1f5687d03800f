"""The difference of two rhos on the same rows, with a paired bootstrap interval.

Both score vectors are ranked in the same resamples, so what they share cancels: the interval of
the difference is what says whether one is ahead, not whether their own intervals overlap.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.judgement.bootstrap import (
    RESAMPLES,
    Interval,
    draw_counts,
    percentile_interval,
    spearman_resampled,
)
from lpzero.judgement.correlation import spearman
from lpzero.judgement.ranks import rank, rank_targets


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
