"""Choosing among formulas by hand: stable ones by rho, the simpler of equals, their rank mean."""

from __future__ import annotations

import numpy as np
import pytest

from lpzero.discover.objective import order_of, rank_mean
from lpzero.judgement.correlation import agreement

UP = np.arange(8.0)
NEARLY = np.array([0, 1, 2, 3, 4, 5, 7, 6.0])


def test_stable_formulas_come_by_rho_and_equals_by_complexity() -> None:
    rho = np.array([0.9, 0.8, 0.95, 0.9])
    stability = np.array([1.0, 1.0, 0.5, 1.0])
    assert order_of(rho, stability, [7, 3, 1, 5], 0.99).tolist() == [3, 0, 1]
    assert order_of(rho, None, [7, 3, 1, 5], 0.99).tolist() == [2, 3, 0, 1]


def test_without_a_stable_formula_the_most_stable_one_is_left() -> None:
    assert order_of(np.array([0.9, 0.8]), np.array([0.3, 0.6]), [1, 1], 0.99).tolist() == [1]


def test_an_ensemble_is_the_mean_rank_of_its_members() -> None:
    expected = [1, 2, 3, 4, 5, 6, 7.5, 7.5]  # the mean of 7 and 8 either way
    assert rank_mean(np.stack([100 * UP, NEARLY])).tolist() == expected


def test_scores_that_do_not_repeat_are_left_out() -> None:
    steady = agreement(np.stack([UP, NEARLY]), np.stack([UP[::-1], NEARLY]))
    assert steady == pytest.approx([-1.0, 1.0])
    assert order_of(np.array([1.0, 0.9]), steady, [1, 1], 0.99).tolist() == [1]
