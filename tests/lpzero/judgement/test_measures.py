"""The three measures: of many score vectors at once, and their names."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from lpzero.errors import InputError
from lpzero.judgement.correlation import partial_spearman, spearman_many, within_spearman
from lpzero.judgement.measures import MEASURES, Measures, RankMeasures, read_measure
from lpzero.judgement.ranks import rank_targets


@pytest.mark.slow
@given(st.integers(0, 10**6))
def test_the_measures_are_those_of_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(8, 40))
    # Six digits as in ranking: scipy would tell apart what ranking calls a tie.
    scores = np.vectorize(lambda x: float(f"{x:.5e}"))(rng.normal(size=(6, n)))
    scores[:3] = rng.integers(0, 4, size=(3, n))  # ties
    scores[5] = 1.0
    targets = rng.integers(0, n, size=n).astype(float)
    targets[:2] = 0, n
    groups = rng.integers(0, 3, size=n)
    size = rng.integers(1, 6, size=n).astype(float)
    size[:2] = 1, 7
    found = RankMeasures(targets, size, groups).measure(scores)
    batched = spearman_many(scores, rank_targets(targets)).values
    np.testing.assert_array_equal(found.values[0], batched)
    assert found.constant.tolist() == [bool(np.ptp(row) == 0) for row in scores]
    for row, values in zip(scores[:5], found.values.T, strict=False):
        if np.ptp(row):
            expected = scipy.stats.spearmanr(row, targets).statistic
            assert values[0] == pytest.approx(expected, abs=1e-14)
            assert values[1] == pytest.approx(partial_spearman(row, targets, size), abs=1e-12)
        within = within_spearman(row, targets, groups)
        assert values[2] == pytest.approx(within.rho if within else 0.0, abs=1e-14)


def test_a_score_that_is_not_finite_has_no_measure() -> None:
    measures = RankMeasures(np.arange(8.0), np.arange(8.0), np.zeros(8, dtype=np.int64))
    scores = np.stack([np.arange(8.0), np.full(8, np.nan), np.full(8, 1e308)])
    found = measures.measure(scores)
    assert np.isnan(found.values).all(axis=0).tolist() == [False, True, False]
    assert found.non_finite.tolist() == [False, True, False]
    assert found.constant.tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["rho"], "rho"),
        (["rho_given_params", "rho-given-params", "given-params", "partial"], "rho_given_params"),
        (["rho_within", "rho-within", "within", " within "], "rho_within"),
    ],
)
def test_a_user_may_write_a_name_or_a_short_word(words: list[str], name: str) -> None:
    assert name in MEASURES
    assert {read_measure(word) for word in words} == {name}


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("withn", "unknown measure 'withn'; did you mean 'within'"),
        ("tau", "unknown measure 'tau'; choose from: rho, "),
        ("", "unknown measure ''; choose from"),
    ],
)
def test_an_unknown_measure_is_answered_with_the_nearest(word: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_measure(word)


def test_negating_measures_makes_no_negative_zero() -> None:
    negated = Measures(0.5, -0.25, 0.0).negated()
    assert negated == (-0.5, 0.25, 0.0)
    assert str(negated.rho_within) == "0.0"


def test_groups_count_by_their_size() -> None:
    scores = np.concatenate([np.arange(5.0), -np.arange(15.0)])
    targets = np.concatenate([np.arange(5.0), np.arange(15.0)])
    measures = RankMeasures(targets, np.arange(20.0), np.repeat([3, 1], [5, 15]))
    assert measures.n_within == 20
    assert measures.measure(scores[np.newaxis]).values[2, 0] == pytest.approx(-0.5)
