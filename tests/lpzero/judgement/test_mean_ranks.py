"""Mean ranks over tables: a worked example of Demsar, ties, and what is flat."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from lpzero.judgement.mean_ranks import mean_ranks


def test_the_critical_difference_is_that_of_demsars_example() -> None:
    # Four classifiers on fourteen data sets (Demsar 2006, section 3.2.2): 2.569 * 0.488 = 1.25.
    found = mean_ranks(np.random.default_rng(0).random((4, 14)))
    assert found.critical_difference == pytest.approx(1.25, abs=0.01)


def test_ranks_begin_with_the_largest_and_ties_share_theirs() -> None:
    measures = np.array([[0.9, 0.1, 0.7], [0.5, 0.4, 0.7], [0.1, 0.4, 0.2]])
    found = mean_ranks(measures)
    assert found.ranks == pytest.approx([(1 + 3 + 1.5) / 3, (2 + 1.5 + 1.5) / 3, (3 + 1.5 + 3) / 3])
    assert found.p == pytest.approx(stats.friedmanchisquare(*measures).pvalue)


def test_where_nothing_differs_nothing_is_found() -> None:
    found = mean_ranks(np.ones((3, 4)))
    assert (found.p, found.ranks.tolist()) == (1.0, [2.0, 2.0, 2.0])
