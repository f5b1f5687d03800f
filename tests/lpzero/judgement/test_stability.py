"""Stability: how far scores repeat over other seeds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from lpzero.judgement.correlation import Stability, agreement, spearman, stability


def test_it_is_the_median_and_the_least_rank_correlation() -> None:
    rng = np.random.default_rng(0)
    scores = rng.random(40)
    others = scores + np.array([[0.01], [0.1], [1.0]]) * rng.random((3, 40))
    expected = sorted(spearman(other, scores) for other in others)
    found = stability(scores, others)
    assert (found.n, found.median, found.least) == pytest.approx((3, expected[1], expected[0]))


def test_scores_that_are_lost_on_another_seed_do_not_repeat() -> None:
    scores = np.arange(6.0)
    others = np.stack([scores, np.where(scores > 3, np.nan, scores)])
    assert stability(scores, others) == Stability(2, 0.5, 0.0)
    assert stability(scores, scores).to_json() == {"n": 1, "median": 1.0, "least": 1.0}


def test_agreement_is_the_rank_correlation_of_rows_that_belong_together() -> None:
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(5, 30))
    again = scores + rng.normal(size=(5, 30)) * np.array([[0.0], [0.5], [1.0], [4.0], [1.0]])
    again[4] *= -1
    expected = [stats.spearmanr(*pair).statistic for pair in zip(scores, again, strict=True)]
    assert agreement(scores, again) == pytest.approx(expected)
    again[1, 3], again[2] = np.nan, 7.0
    assert agreement(scores, again)[1:3].tolist() == [0.0, 0.0]
    assert agreement(again, scores)[[0, 3]] == pytest.approx([expected[0], expected[3]])
