"""Scores against targets: everything a result must show of a proxy, never one number.

    scores (n,), targets (n,)  ->  Judgement

Batched correlations for searching are in `correlation`; this module judges what was found.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from lpzero.arrays import FloatArray, LabelArray
from lpzero.judgement.bootstrap import Interval, intervals
from lpzero.judgement.correlation import (
    kendall_many,
    partial_spearman,
    spearman,
    spearman_many,
    top_precision,
    within_spearman,
)
from lpzero.judgement.ranks import rank_targets

Flaw = Literal["constant", "non-finite"]


@dataclass(frozen=True, slots=True)
class Judgement:
    """How well scores rank n architectures; larger is better, everything finite.

    `rho_given_params` is None without parameters, `rho_within` without groups that tell
    anything (`n_within` architectures are in those that do). A flawed score vector, constant
    or with a value that is not finite, has zeros throughout and says so in `flaw`.
    """

    n: int
    rho: float
    rho_ci: Interval
    tau: float
    tau_ci: Interval
    sign: int
    top_precision: float
    rho_given_params: float | None = None
    rho_within: float | None = None
    n_within: int = 0
    flaw: Flaw | None = None

    def to_json(self) -> dict[str, Any]:
        """The fields as plain JSON values."""
        fields = asdict(self)
        return fields | {"rho_ci": list(self.rho_ci), "tau_ci": list(self.tau_ci)}


def judge(
    scores: FloatArray,
    targets: FloatArray,
    *,
    parameters: FloatArray | None = None,
    groups: LabelArray | None = None,
    sign: int = 1,
    seed: int = 0,
    resamples: int = 1000,
) -> Judgement:
    """The judgement of sign * scores (n,) on targets (n,).

    `sign` comes from `orient` on the training rows, `parameters` (n,) and `groups` (n,) from
    the table; the seed and the number of resamples make the bootstrap intervals.
    """
    scores = sign * np.asarray(scores, dtype=np.float64)
    found = spearman_many(scores[np.newaxis], rank_targets(targets))
    if found.constant[0] or found.non_finite[0]:
        flaw: Flaw = "constant" if found.constant[0] else "non-finite"
        return _flawed(flaw, targets, parameters, groups, sign)
    around = intervals(scores, targets, seed, resamples)
    within = None if groups is None else within_spearman(scores, targets, groups)
    return Judgement(
        n=len(scores),
        rho=float(found.values[0]),
        rho_ci=around.rho,
        tau=float(kendall_many(scores[np.newaxis], targets).values[0]),
        tau_ci=around.tau,
        sign=sign,
        top_precision=top_precision(scores, targets),
        rho_given_params=(
            None if parameters is None else partial_spearman(scores, targets, parameters)
        ),
        rho_within=None if within is None else within.rho,
        n_within=0 if within is None else within.n_archs,
    )


def _flawed(
    flaw: Flaw,
    targets: FloatArray,
    parameters: FloatArray | None,
    groups: LabelArray | None,
    sign: int,
) -> Judgement:
    """The judgement of scores that rank nothing."""
    n = len(targets)
    within = None if groups is None else within_spearman(np.zeros(n), targets, groups)
    return Judgement(
        n=n,
        rho=0.0,
        rho_ci=(0.0, 0.0),
        tau=0.0,
        tau_ci=(0.0, 0.0),
        sign=sign,
        top_precision=0.0,
        rho_given_params=None if parameters is None else 0.0,
        rho_within=None if within is None else 0.0,
        n_within=0 if within is None else within.n_archs,
        flaw=flaw,
    )


def orient(scores: FloatArray, targets: FloatArray) -> int:
    """The sign, 1 or -1, with which the scores (n,) rank the targets (n,) the right way up.

    Fit it on the training rows only.
    """
    return -1 if spearman(scores, targets) < 0 else 1
