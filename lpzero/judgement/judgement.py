"""The judgement of scores: all the numbers that a result reports for a proxy.

    scores (n,), targets (n,)  ->  Judgement

`correlation` has the batched correlations that searches use; `table` judges all parts of a table.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from lpzero.arrays import FloatArray, LabelArray
from lpzero.judgement.bootstrap import Interval, intervals
from lpzero.judgement.correlation import (
    kendall_many,
    pairs_within,
    partial_spearman,
    spearman_many,
    top_precision,
    untied,
    within_spearman,
)
from lpzero.judgement.ranks import rank_targets

Flaw = Literal["constant", "non-finite"]


@dataclass(frozen=True, slots=True)
class Judgement:
    """How well scores rank n architectures; larger is better, everything finite.

    `rho` averages ties, `rho_untied` is its expectation when ties of the scores are broken at
    random, because a search must order everything it is given. `rho_given_params` is None where
    there are no parameters, `rho_within` if no group can be measured; `n_within` architectures are
    in groups that can be. `pairs_within` is the share of the `n_pairs` pairs of one group that the
    scores order as the targets do, ties one half; None if there are none. For a flawed score
    vector, constant or with a value that is not finite, all numbers are zero, `pairs_within` is one
    half, and `flaw` names the reason.
    """

    n: int
    rho: float
    rho_untied: float
    rho_ci: Interval
    tau: float
    tau_ci: Interval
    top_precision: float
    rho_given_params: float | None
    rho_within: float | None
    n_within: int
    pairs_within: float | None = None
    n_pairs: int = 0
    flaw: Flaw | None = None

    def to_json(self) -> dict[str, Any]:
        """The fields as plain JSON values."""
        fields = asdict(self)
        return fields | {"rho_ci": list(self.rho_ci), "tau_ci": list(self.tau_ci)}


def judge(
    scores: FloatArray,
    targets: FloatArray,
    parameters: FloatArray | None,
    groups: LabelArray | None,
) -> Judgement:
    """The judgement of scores (n,) on targets (n,); parameters and group labels (n,), if any."""
    has_sizes = parameters is not None
    if groups is None:
        groups = np.arange(len(targets))  # none of them is large enough to rank within
    scores = np.asarray(scores, dtype=np.float64)
    rho = spearman_many(scores[np.newaxis], rank_targets(targets))
    if rho.constant[0] or rho.non_finite[0]:
        flaw: Flaw = "constant" if rho.constant[0] else "non-finite"
        return _flawed(flaw, targets, groups, has_sizes)
    ci = intervals(scores, targets)
    within = within_spearman(scores, targets, groups)
    pairs = pairs_within(scores, targets, groups)
    return Judgement(
        n=len(scores),
        rho=float(rho.values[0]),
        rho_untied=untied(float(rho.values[0]), scores),
        rho_ci=ci.rho,
        tau=float(kendall_many(scores[np.newaxis], targets).values[0]),
        tau_ci=ci.tau,
        top_precision=top_precision(scores, targets),
        rho_given_params=None
        if parameters is None
        else partial_spearman(scores, targets, parameters),
        rho_within=None if within is None else within.rho,
        n_within=0 if within is None else within.n_archs,
        pairs_within=None if pairs is None else pairs.share,
        n_pairs=0 if pairs is None else pairs.n,
    )


def _flawed(flaw: Flaw, targets: FloatArray, groups: LabelArray, has_sizes: bool) -> Judgement:
    """The judgement of scores that cannot be ranked."""
    n = len(targets)
    within = within_spearman(np.zeros(n), targets, groups)
    pairs = pairs_within(np.zeros(n), targets, groups)
    return Judgement(
        n=n,
        rho=0.0,
        rho_untied=0.0,
        rho_ci=(0.0, 0.0),
        tau=0.0,
        tau_ci=(0.0, 0.0),
        top_precision=0.0,
        rho_given_params=0.0 if has_sizes else None,
        rho_within=None if within is None else 0.0,
        n_within=0 if within is None else within.n_archs,
        pairs_within=None if pairs is None else pairs.share,
        n_pairs=0 if pairs is None else pairs.n,
        flaw=flaw,
    )
