"""Choosing among formulas by hand: stable ones by rho, the simpler of equals, with their signs."""

from __future__ import annotations

import numpy as np
import pytest

from lpzero.discover.choice import choose, ensemble_scores, order_of

TARGETS = np.arange(8.0)
ROWS = np.arange(8)
UP = np.arange(8.0)
NEARLY = np.array([0, 1, 2, 3, 4, 5, 7, 6.0])


def test_stable_formulas_come_by_rho_and_equals_by_complexity() -> None:
    rho = np.array([0.9, 0.8, 0.95, 0.9])
    stability = np.array([1.0, 1.0, 0.5, 1.0])
    assert order_of(rho, stability, [7, 3, 1, 5], 0.99).tolist() == [3, 0, 1]
    assert order_of(rho, None, [7, 3, 1, 5], 0.99).tolist() == [2, 3, 0, 1]


def test_without_a_stable_formula_the_most_stable_one_is_left() -> None:
    assert order_of(np.array([0.9, 0.8]), np.array([0.3, 0.6]), [1, 1], 0.99).tolist() == [1]


def test_members_of_an_ensemble_are_turned_the_right_way() -> None:
    scores = np.stack([UP, -NEARLY])
    found = choose(scores, None, TARGETS, ROWS, [1, 2])
    assert found.signs.tolist() == [1.0, -1.0]
    assert found.rho == pytest.approx([1.0, 1 - 6 * 2 / (8 * 63)])
    assert np.isnan(found.stability).all()
    assert found.best == 0
    expected = [1, 2, 3, 4, 5, 6, 7.5, 7.5]  # the mean of 7 and 8 either way
    assert ensemble_scores(scores, found).tolist() == expected


def test_scores_that_do_not_repeat_are_left_out() -> None:
    scores = np.stack([UP, NEARLY])
    repeated = np.stack([UP[::-1], NEARLY])
    found = choose(scores, repeated, TARGETS, ROWS, [1, 1])
    assert found.stability == pytest.approx([-1.0, 1.0])
    assert found.order.tolist() == [1]
