"""How good a proxy's favourite of each group is: the mean best rank."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.errors import FitnessError
from lpzero.judgement.ranks import rank, rank_targets


def mean_best_rank(scores: FloatArray, targets: FloatArray, groups: Sequence[Hashable]) -> float:
    """mBR = sum (r_g - 1) / sum (|g| - 1), 0 if each favourite is the best and 1 if the worst.

    r_g is the rank among the group's targets, best first, of the architecture with the group's
    highest score (appendix A of PreNAS); of several the mean. Equal targets share a rank.
    """
    if not len(scores) == len(targets) == len(groups):
        lengths = f"{len(scores)} scores, {len(targets)} targets and {len(groups)} groups"
        raise FitnessError(f"{lengths} were given; expected as many of each")
    scores, targets = (np.asarray(x, dtype=np.float64) for x in (scores, targets))
    rows: dict[Hashable, list[int]] = {}
    for row, group in enumerate(groups):
        rows.setdefault(group, []).append(row)
    lost = total = 0.0
    for members in rows.values():
        if len(members) < 2:
            continue
        places = rank_targets(-targets[members])
        favours = rank(scores[members])
        lost += float(places[favours == favours.max()].mean()) - 1
        total += len(members) - 1
    if total == 0:
        raise FitnessError("no group has two architectures; the mean best rank needs some")
    return lost / total
