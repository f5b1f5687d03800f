"""One number across tables, worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lpzero.judgement.measures import ONE_TABLE, Across

RHOS = np.array([[0.9, -0.2, 0.5], [0.7, -0.6, -0.4]])  # two tables, three formulas


def test_the_regret_is_the_lowest_distance_to_each_tables_own_best() -> None:
    values, signs = Across("regret", [0.95, 0.72]).signed(RHOS)
    assert values.tolist() == pytest.approx([0.9 - 0.95, 0.2 - 0.95, -0.4 - 0.72])
    assert signs.tolist() == [1, -1, 1]  # the third loses 1.12 as it stands, 1.45 negated


def test_a_regret_on_four_times_the_rows_counts_twice() -> None:
    values, signs = Across("regret", [0.95, 0.72], rows=[100, 25]).signed(RHOS)
    assert values.tolist() == pytest.approx([10 * (0.9 - 0.95), 10 * (0.2 - 0.95), 5 * -1.12])
    assert signs.tolist() == [1, -1, 1]


def test_fishers_z_is_averaged_and_read_as_a_correlation() -> None:
    values, signs = Across("fisher").signed(RHOS)
    by_hand = [math.tanh((math.atanh(a) + math.atanh(b)) / 2) for a, b in RHOS.T]
    assert values.tolist() == pytest.approx([by_hand[0], -by_hand[1], by_hand[2]])
    assert signs.tolist() == [1, -1, 1]
    assert Across("fisher").value(np.array([1.0, 0.0])) < 1


def test_the_lowest_counts_with_one_sign_for_all_tables() -> None:
    values, signs = Across("min").signed(RHOS)
    assert values.tolist() == pytest.approx([0.7, 0.2, -0.4])
    assert signs.tolist() == [1, -1, 1]


@pytest.mark.parametrize("across", [ONE_TABLE, Across("fisher"), Across("regret", [0.5])])
def test_one_table_counts_by_its_own_value(across: Across) -> None:
    assert across.value(RHOS[:1]).tolist() == RHOS[0].tolist()
