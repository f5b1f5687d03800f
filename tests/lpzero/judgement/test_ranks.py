"""Ranks against scipy, and which digits decide a tie."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from lpzero.arrays import FloatArray
from lpzero.errors import FitnessError
from lpzero.judgement import ranks
from tests.lpzero.judgement.score_rows import Seed, score_rows


@pytest.mark.slow
@given(seed=Seed, n=st.integers(2, 300))
def test_ranks_equal_scipys_exactly(seed: int, n: int) -> None:
    rows = score_rows(seed, n_rows=8, n=n)
    assert (ranks.rank_many(rows) == stats.rankdata(rows, axis=1)).all()


finite = st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.slow
@given(hnp.arrays(np.float64, st.tuples(st.just(1), st.integers(2, 40)), elements=finite))
def test_ranks_agree_with_the_order_over_the_whole_float_range(rows: FloatArray) -> None:
    keys = ranks.quantise_keys(rows)[0]
    order = np.argsort(rows[0], kind="stable")
    assert (np.diff(keys[order]) >= 0).all()
    halves = rows[0][order] / 2  # whose differences do not overflow
    apart = np.abs(np.diff(halves)) > 1e-5 * np.abs(halves[:-1])
    large = np.abs(rows[0][order][:-1]) > 1e-317  # with six digits left
    assert (np.diff(keys[order])[apart & large] > 0).all()


@pytest.mark.parametrize(
    ("first", "second", "is_tie"),
    [
        (1.0, 1.0000004, True),
        (1.0, 1.00001, False),
        (123456.4, 123456.0, True),
        (123457.0, 123456.0, False),
        (-9.999996, -10.0, True),
        (0.0, -0.0, True),
        (0.0, 1e-250, False),
        (0.0, 5e-324, False),
        (1e-310, 2e-310, False),
        (1e-310, -1e-310, False),
        (-3e-320, -4e-320, False),
        (1e-308, 1.0000001e-308, True),
        (1.99e-301, 1.8e-301, False),
        (1e-200, -1e-200, False),
        (9.99999e-7, 1e-6, False),
    ],
)
def test_six_significant_digits_decide_a_tie(first: float, second: float, is_tie: bool) -> None:
    keys = ranks.quantise_keys(np.array([first, second]))
    assert (keys[0] == keys[1]) == is_tie


def test_powers_of_ten_are_told_from_their_neighbours() -> None:
    powers = np.array([float(f"1e{e}") for e in range(-314, 300)])
    for factor in (0.999999, 1.00001):
        keys = ranks.quantise_keys(powers * factor) - ranks.quantise_keys(powers)
        assert set(keys.tolist()) == {1 if factor > 1 else -1}


def test_targets_keep_more_digits_than_scores_but_lose_float_noise() -> None:
    targets = np.array([67.38125, 67.38125000000001, 67.3812501])
    assert ranks.rank_targets(targets).tolist() == [1.5, 1.5, 3.0]


@given(seed=Seed)
def test_target_ranks_equal_scipys(seed: int) -> None:
    targets = np.random.default_rng(seed).integers(-5, 5, 40) / 7
    assert (ranks.rank_targets(targets) == stats.rankdata(targets)).all()


def test_scores_that_are_not_finite_have_no_ranks() -> None:
    with pytest.raises(FitnessError, match="not finite have no ranks"):
        ranks.rank(np.array([1.0, np.inf]))


def test_ranks_of_targets_that_are_kept_cannot_be_changed_by_whoever_got_them() -> None:
    targets = np.array([0.3, 0.1, 0.3, 0.2])
    first = ranks.rank_targets(targets)
    first[:] = 0
    assert ranks.rank_targets(targets).tolist() == [3.5, 1, 3.5, 2]
    assert ranks.rank_targets(targets[::2]).tolist() == [1.5, 1.5]
