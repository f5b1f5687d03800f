"""The mean best rank: how good the best architecture by proxy is within each group."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.errors import FitnessError
from lpzero.judgement.ranks import rank, rank_targets


def mean_best_rank(scores: FloatArray, targets: FloatArray, groups: Sequence[Hashable]) -> float:
    """mBR = sum (r_g - 1) / sum (|g| - 1): 0 if each choice is the group's best, 1 if its worst.

    r_g is the rank among the group's targets, best first, of the architecture with the group's
    highest score (appendix A of PreNAS), or the mean rank if several tie. Equal targets share a
    rank.
    """
    if not len(scores) == len(targets) == len(groups):
        lengths = f"{len(scores)} scores, {len(targets)} targets and {len(groups)} groups"
        raise FitnessError(f"{lengths} were given; expected equal numbers")
    scores, targets = (np.asarray(x, dtype=np.float64) for x in (scores, targets))
    rows: dict[Hashable, list[int]] = {}
    for row, group in enumerate(groups):
        rows.setdefault(group, []).append(row)
    lost = total = 0.0
    for members in rows.values():
        if len(members) < 2:
            continue
        target_ranks = rank_targets(-targets[members])
        score_ranks = rank(scores[members])
        lost += float(target_ranks[score_ranks == score_ranks.max()].mean()) - 1
        total += len(members) - 1
    if total == 0:
        raise FitnessError("no group has two architectures; the mean best rank is undefined")
    return lost / total
