"""Paired differences of rho: against a plain loop over resamples, and what they say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from lpzero.errors import FitnessError
from lpzero.judgement import bootstrap
from lpzero.judgement.bootstrap import Difference, Outcome, paired_difference
from lpzero.judgement.correlation import spearman


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1))
def test_it_equals_a_loop_over_the_resamples(seed: int) -> None:
    rng = np.random.default_rng(seed)
    targets = rng.integers(0, 30, 35).astype(float)
    a, b = targets + rng.normal(0, 8, 35), rng.integers(0, 4, 35).astype(float)
    drawn = []
    for counts in bootstrap.draw_counts(35, bootstrap.RESAMPLES).astype(int):
        rows = np.repeat(np.arange(35), counts)
        of_a, of_b = (stats.spearmanr(x[rows], targets[rows]).statistic for x in (a, b))
        drawn.append(of_a - of_b)
    found = paired_difference(a, b, targets)
    assert found.n == 35
    assert found.rho == spearman(a, targets) - spearman(b, targets)
    assert found.rho_ci == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=1e-12)
    assert found.share_above == np.mean(np.array(drawn) > 0)


def test_the_other_way_round_it_has_the_other_sign() -> None:
    rng = np.random.default_rng(5)
    a, b, targets = rng.random((3, 40))
    one, other = paired_difference(a, b, targets), paired_difference(b, a, targets)
    assert one.rho == -other.rho
    assert one.rho_ci == pytest.approx((-other.rho_ci[1], -other.rho_ci[0]), abs=1e-12)
    assert one.share_above + other.share_above == pytest.approx(1, abs=0.01)


def test_scores_that_rank_alike_do_not_differ() -> None:
    targets, scores = np.random.default_rng(1).random((2, 30))
    found = paired_difference(np.exp(scores), scores, targets)
    assert found == Difference(30, 0.0, (0.0, 0.0), 0.0)
    assert found.outcome is Outcome.NOT_AHEAD


def test_pairing_settles_what_separate_intervals_do_not() -> None:
    rng = np.random.default_rng(2)
    targets = rng.random(80)
    b = targets + 0.3 * rng.standard_normal(80)
    a = b + 0.3 * (targets - b)
    found = paired_difference(a, b, targets)
    assert bootstrap.intervals(a, targets).rho[0] < bootstrap.intervals(b, targets).rho[1]
    assert found.outcome is Outcome.AHEAD


@pytest.mark.parametrize(
    ("rho", "low", "outcome"),
    [(0.1, 0.01, "ahead"), (0.1, 0.0, "not settled"), (0.1, -0.1, "not settled"),
     (0.0, 0.0, "not ahead"), (-0.1, -0.2, "not ahead")],
)  # fmt: skip
def test_the_outcome_is_read_from_the_interval(rho: float, low: float, outcome: str) -> None:
    found = Difference(50, rho, (low, 0.3), 0.9)
    assert found.to_json() == {
        "n": 50, "rho": rho, "rho_ci": [low, 0.3], "share_above": 0.9, "outcome": outcome,
    }  # fmt: skip


def test_scores_that_are_not_finite_are_refused() -> None:
    good = np.arange(5.0)
    with pytest.raises(FitnessError, match="not finite"):
        paired_difference(np.array([1, 2, np.nan, 4, 5]), good, good)
