"""Rank correlations against scipy and by hand."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lpzero.errors import FitnessError
from lpzero.judgement import bootstrap, correlation, ranks
from tests.lpzero.judgement.score_rows import Seed, score_rows


@pytest.mark.slow
@given(seed=Seed, n=st.integers(5, 120))
def test_spearman_equals_scipys(seed: int, n: int) -> None:
    rows, target = score_rows(seed, n=n), np.random.default_rng(seed).integers(0, n, n) / 3
    found = correlation.spearman_many(rows, ranks.rank_targets(target))
    for row, rho, constant in zip(rows, found.values, found.constant, strict=True):
        if np.ptp(row) == 0 or np.ptp(target) == 0:
            assert rho == 0
        else:
            assert rho == pytest.approx(stats.spearmanr(row, target).statistic, abs=1e-12)
        assert constant == (np.ptp(row) == 0)


@pytest.mark.slow
@given(seed=Seed, n=st.integers(2, 200), digits=st.integers(3, 9))
def test_scores_are_sorted_as_if_rounded(seed: int, n: int, digits: int) -> None:
    rng = np.random.default_rng(seed)
    rows = score_rows(seed, n=n)
    rows = np.vstack([rows, np.round(rng.standard_normal((20, n)), digits) * 10.0 ** (digits - 3)])
    rows[-1, rng.random(n) < 0.5] *= -0.0
    rows[-2] = 1.000005 + rng.integers(-3, 3, n) * 2.0**-48  # around a border of rounding
    rows[-3] = 1.000005 + rng.integers(-3, 3, n) * 2.0**-51
    rows[-4] *= 1e-310
    target = ranks.rank_targets(rng.integers(0, n, n) / 7)
    found = correlation.spearman_many(rows, target)
    naive = ranks.rank_many(rows) - (n + 1) / 2
    centred = target - (n + 1) / 2
    size = np.sqrt((naive**2).sum(axis=1) * (centred @ centred))
    expected = np.divide(naive @ centred, size, out=np.zeros(len(rows)), where=size > 0)
    assert np.abs(found.values - expected).max() <= 1e-12
    assert found.constant.tolist() == (np.ptp(naive, axis=1) == 0).tolist()


@pytest.mark.parametrize("n_values", [2, 3, 8])
def test_untied_rho_is_the_mean_over_ways_of_breaking_ties(n_values: int) -> None:
    rng = np.random.default_rng(n_values)
    targets = rng.integers(0, 20, 40).astype(float)
    scores = np.digitize(targets + 4 * rng.standard_normal(40), np.arange(1, n_values) * 6.0) + 0.0
    broken = scores + rng.uniform(0, 0.5, (20_000, 40))
    mean = correlation.spearman_many(broken, ranks.rank_targets(targets)).values.mean()
    rho = correlation.spearman(scores, targets)
    assert correlation.untied(rho, scores) == pytest.approx(mean, abs=2e-3)
    assert correlation.untied(rho, scores) < rho


def test_without_ties_nothing_is_broken() -> None:
    scores, targets = np.random.default_rng(0).random((2, 31))
    rho = correlation.spearman(scores, targets)
    assert correlation.untied(rho, scores) == rho
    assert correlation.untied(0.0, np.ones(31)) == 0


@pytest.mark.slow
@given(seed=Seed, n=st.integers(5, 60))
def test_kendall_equals_scipys(seed: int, n: int) -> None:
    rows, target = score_rows(seed, n=n), np.random.default_rng(seed).integers(0, n, n) / 3
    found = correlation.kendall_many(rows, target).values
    for row, tau in zip(rows, found, strict=True):
        expected = stats.kendalltau(row, target).statistic
        assert tau == pytest.approx(0.0 if math.isnan(expected) else expected, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("n_rows", [0, 1, 2500])
def test_blocks_do_not_show(n_rows: int) -> None:
    rows, target = score_rows(1, n_rows, 50), np.arange(50.0)
    together = correlation.spearman_many(rows, target).values
    alone = [correlation.spearman_many(row[np.newaxis], target).values[0] for row in rows]
    assert together.tolist() == alone
    pairs = correlation.kendall_many(rows, target).values
    assert pairs[:50].tolist() == correlation.kendall_many(rows[:50], target).values.tolist()


def test_a_row_that_is_not_finite_is_flagged_and_never_nan() -> None:
    rows = np.tile(np.arange(6.0), (5, 1))
    rows[1, 2], rows[2, 0], rows[3] = np.nan, np.inf, 1e308
    target = np.arange(6.0)
    for found in (
        correlation.spearman_many(rows, ranks.rank_targets(target)),
        correlation.kendall_many(rows, target),
    ):
        assert found.values.tolist() == pytest.approx([1, -np.inf, -np.inf, 0, 1])
        assert found.non_finite.tolist() == [False, True, True, False, False]
        assert found.constant.tolist() == [False, False, False, True, False]


def test_the_input_is_left_alone() -> None:
    rows = score_rows(3)
    rows[0, 0] = np.nan
    before = rows.copy()
    correlation.spearman_many(rows, np.arange(30.0))
    correlation.kendall_many(rows, np.arange(30.0))
    assert np.array_equal(rows, before, equal_nan=True)


def test_partial_spearman_equals_the_correlation_of_rank_residuals() -> None:
    rng = np.random.default_rng(0)
    sizes = rng.random(80)
    scores, targets = sizes + rng.random(80), sizes + rng.random(80)
    s, t, g = (stats.rankdata(x) - 40.5 for x in (scores, targets, sizes))
    left = [x - g * (x @ g) / (g @ g) for x in (s, t)]
    expected = np.corrcoef(*left)[0, 1]
    found = correlation.partial_spearman(scores, targets, sizes)
    assert found == pytest.approx(expected, abs=1e-12)
    assert found == correlation.partial_spearman(scores, targets, np.log(sizes))


def test_nothing_is_left_of_a_counter_given_itself() -> None:
    sizes = np.random.default_rng(0).integers(10**6, 10**8, 50).astype(float)
    targets = np.random.default_rng(1).random(50)
    assert correlation.partial_spearman(sizes, targets, sizes) == 0.0


def test_pairs_within_groups_are_counted_one_by_one() -> None:
    rng = np.random.default_rng(5)
    scores, targets = rng.integers(0, 4, 30).astype(float), rng.integers(0, 6, 30).astype(float)
    groups = rng.integers(0, 9, 30)
    ordered = []
    for a, b in itertools.combinations(range(30), 2):
        if groups[a] == groups[b] and targets[a] != targets[b]:
            is_tied = scores[a] == scores[b]
            ordered.append(0.5 if is_tied else (scores[a] > scores[b]) == (targets[a] > targets[b]))
    found = correlation.pairs_within(scores, targets, groups)
    assert found is not None
    assert {0.5, True, False} == set(ordered)
    assert (found.share, found.n) == (pytest.approx(np.mean(ordered)), len(ordered))
    assert correlation.pairs_within(scores, targets, np.arange(30)) is None
    assert correlation.pairs_within(scores, np.ones(30), groups) is None


def test_within_groups_is_the_weighted_mean_of_the_groups_that_tell() -> None:
    scores = np.array([1, 2, 3, 4, 5, 6, 5, 4, 3, 2, 1, 0, 9, 9, 9, 9, 9, 1, 2.0])
    targets = np.array([1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 1, 2.0])
    groups = np.repeat([0, 1, 2, 3], [6, 6, 5, 2])
    found = correlation.within_spearman(scores, targets, groups)
    assert found == correlation.GroupedRho(pytest.approx(0.0), 3, 17)
    first = correlation.within_spearman(scores[:17], targets[:17], np.where(groups[:17] == 1, 9, 5))
    assert first is not None
    assert first.n_groups == 2


def test_groups_of_one_target_tell_nothing() -> None:
    assert correlation.within_spearman(np.arange(6.0), np.ones(6), np.zeros(6, dtype=int)) is None


def test_top_precision_counts_the_best_tenth() -> None:
    targets = np.arange(40.0)
    scores = targets.copy()
    assert correlation.top_precision(scores, targets) == 1.0
    scores[[39, 38]] = -1
    assert correlation.top_precision(scores, targets) == 0.5


def test_ties_at_the_border_share_the_places() -> None:
    targets = np.arange(20.0)
    assert correlation.top_precision(np.ones(20), targets) == pytest.approx(0.1)
    assert correlation.top_precision(np.repeat([0.0, 1.0], 10), targets) == pytest.approx(0.2)


def test_hidden_targets_cannot_be_ranked_by_any_function() -> None:
    scores, targets = np.arange(20.0), np.arange(20.0)
    targets[7] = np.nan
    for use in (
        correlation.spearman,
        correlation.top_precision,
        bootstrap.intervals,
        lambda s, t: correlation.kendall_many(s[np.newaxis], t),
        lambda s, t: correlation.partial_spearman(s, t, s),
        lambda s, t: correlation.within_spearman(s, t, np.zeros(20, dtype=int)),
    ):
        with pytest.raises(FitnessError, match="target 7 is nan"):
            use(scores, targets)


def test_groups_count_by_their_size_and_five_are_enough() -> None:
    # Rho 1 among five and -1 among fifteen: (5 - 15) / 20. Four more cannot be measured.
    scores = np.concatenate([np.arange(5.0), -np.arange(15.0), np.arange(4.0)])
    targets = np.concatenate([np.arange(5.0), np.arange(15.0), np.arange(4.0)])
    groups = np.repeat([3, 1, 2], [5, 15, 4])
    found = correlation.within_spearman(scores, targets, groups)
    assert found == correlation.GroupedRho(pytest.approx(-0.5), 2, 20)
