"""Judgements against scipy, and the properties a rank fitness must have."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from lpzero.arrays import FloatArray
from lpzero.errors import FitnessError
from lpzero.judgement import bootstrap, correlation, ranks
from lpzero.judgement import judgement as fitness

Seed = st.integers(0, 2**32 - 1)


def six_digits(values: FloatArray) -> FloatArray:
    return np.array([float(f"{v:.5e}") for v in values.reshape(-1)]).reshape(values.shape)


def score_rows(seed: int, n_rows: int = 20, n: int = 30) -> FloatArray:
    """Rows of every kind: smooth, with few values, of both signs, over many decades."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n_rows, n))
    rows[::4] = rng.integers(-2, 3, rows[::4].shape)
    rows[1::4] *= 10.0 ** rng.integers(-200, 200, (len(rows[1::4]), 1))
    rows[2::4] = 10.0 ** rng.uniform(-12, 12, rows[2::4].shape)
    return six_digits(rows)


@given(seed=Seed, n=st.integers(2, 300))
def test_ranks_equal_scipys_exactly(seed: int, n: int) -> None:
    rows = score_rows(seed, n_rows=8, n=n)
    assert (ranks.rank_many(rows) == stats.rankdata(rows, axis=1)).all()


finite = st.floats(allow_nan=False, allow_infinity=False)


@given(hnp.arrays(np.float64, st.tuples(st.just(1), st.integers(2, 40)), elements=finite))
def test_ranks_agree_with_the_order_over_the_whole_float_range(rows: FloatArray) -> None:
    keys = ranks.quantise_keys(rows)[0]
    order = np.argsort(rows[0], kind="stable")
    assert (np.diff(keys[order]) >= 0).all()
    apart = np.abs(np.diff(rows[0][order]) / 2) > 1e-5 * np.abs(rows[0][order][:-1] / 2)
    large = np.abs(rows[0][order][:-1]) > 1e-290
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
        (1e-200, -1e-200, False),
        (9.99999e-7, 1e-6, False),
    ],
)
def test_six_significant_digits_decide_a_tie(first: float, second: float, is_tie: bool) -> None:
    keys = ranks.quantise_keys(np.array([first, second]))
    assert (keys[0] == keys[1]) == is_tie


def test_powers_of_ten_are_told_from_their_neighbours() -> None:
    powers = np.array([float(f"1e{e}") for e in range(-290, 300)])
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


@given(seed=Seed, n=st.integers(5, 60))
def test_kendall_equals_scipys(seed: int, n: int) -> None:
    rows, target = score_rows(seed, n=n), np.random.default_rng(seed).integers(0, n, n) / 3
    found = correlation.kendall_many(rows, target).values
    for row, tau in zip(rows, found, strict=True):
        expected = stats.kendalltau(row, target).statistic
        assert tau == pytest.approx(0.0 if math.isnan(expected) else expected, abs=1e-12)


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


@given(seed=Seed)
def test_a_monotone_rescaling_changes_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, targets = rng.permutation(40) / 8 + 1.0, rng.permutation(40).astype(float)
    scores[:8] = scores[8:16]
    rescaled = fitness.judge(np.exp(scores) * 3, targets**3, resamples=50)
    assert rescaled == fitness.judge(scores, targets, resamples=50)


@given(seed=Seed)
def test_the_order_of_architectures_changes_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, targets = rng.integers(0, 9, 40).astype(float), rng.integers(0, 9, 40).astype(float)
    sizes, groups, order = rng.random(40), rng.integers(0, 4, 40), rng.permutation(40)
    first = fitness.judge(scores, targets, parameters=sizes, groups=groups, resamples=2)
    second = fitness.judge(
        scores[order], targets[order], parameters=sizes[order], groups=groups[order], resamples=2
    )
    for field in ("rho", "tau", "top_precision", "rho_given_params", "rho_within", "n_within"):
        assert getattr(second, field) == pytest.approx(getattr(first, field), abs=1e-12)


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


def test_within_groups_is_the_weighted_mean_of_the_groups_that_tell() -> None:
    scores = np.array([1, 2, 3, 4, 5, 6, 5, 4, 3, 2, 1, 0, 9, 9, 9, 9, 9, 1, 2.0])
    targets = np.array([1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 1, 2.0])
    groups = np.repeat([0, 1, 2, 3], [6, 6, 5, 2])
    found = correlation.within_spearman(scores, targets, groups)
    assert found == correlation.Within(pytest.approx(0.0), 3, 17)
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


@pytest.mark.parametrize("seed", range(3))
def test_resampled_correlations_equal_scipys_on_each_resample(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 12, 25).astype(float), rng.random(25)
    counts = bootstrap.draw_counts(25, seed, 20)
    assert (counts.sum(axis=1) == 25).all()
    rho = bootstrap.spearman_resampled(counts, x, y)
    tau = bootstrap.kendall_resampled(counts, x, y)
    for row, r, t in zip(counts.astype(int), rho, tau, strict=True):
        a, b = np.repeat(x, row), np.repeat(y, row)
        assert r == pytest.approx(stats.spearmanr(a, b).statistic, abs=1e-12)
        assert t == pytest.approx(stats.kendalltau(a, b).statistic, abs=1e-12)


def test_the_interval_holds_the_value_and_follows_the_seed() -> None:
    rng = np.random.default_rng(2)
    targets = rng.random(100)
    scores = targets + 0.3 * rng.random(100)
    first, same, other = (fitness.judge(scores, targets, seed=seed) for seed in (0, 0, 1))
    assert first == same
    assert first.rho_ci != other.rho_ci
    assert first.rho_ci[0] < first.rho < first.rho_ci[1]
    assert first.tau_ci[0] < first.tau < first.tau_ci[1]


@settings(max_examples=20)
@given(seed=Seed)
def test_every_number_of_a_judgement_is_finite(seed: int) -> None:
    rng = np.random.default_rng(seed)
    row = score_rows(seed, 4, 12)[seed % 4]
    judged = fitness.judge(
        row, rng.integers(0, 2, 12).astype(float), parameters=row, groups=rng.integers(0, 2, 12)
    )
    for value in flat(dataclasses.astuple(judged)):
        assert value is None or isinstance(value, str) or math.isfinite(value)


def flat(values: Any) -> list[Any]:
    nested = ([*flat(v)] if isinstance(v, tuple) else [v] for v in values)
    return [value for part in nested for value in part]


@pytest.mark.parametrize(("value", "flaw"), [(np.nan, "non-finite"), (2.0, "constant")])
def test_a_flawed_score_is_judged_as_zero_and_says_so(value: float, flaw: str) -> None:
    judged = fitness.judge(
        np.full(10, value), np.arange(10.0), parameters=np.arange(10.0), groups=np.zeros(10, int)
    )
    assert judged.flaw == flaw
    assert (judged.rho, judged.tau, judged.rho_given_params, judged.rho_within) == (0, 0, 0, 0)
    assert judged.n_within == 10


def test_the_sign_turns_scores_the_right_way_up() -> None:
    targets = np.arange(20.0)
    assert fitness.orient(targets, targets) == 1
    assert fitness.orient(-targets, targets) == -1
    judged = fitness.judge(-targets, targets, sign=-1)
    assert (judged.rho, judged.sign) == (pytest.approx(1.0), -1)


@pytest.mark.parametrize(
    ("scores", "targets", "message"),
    [
        (np.ones(3), np.ones(4), "do not fit"),
        (np.ones(1), np.ones(1), "needs 2 to"),
        (np.ones(3), np.array([1.0, np.nan, 2.0]), "target 1 is nan, expected a finite number"),
    ],
)
def test_what_cannot_be_compared_is_an_error(
    scores: FloatArray, targets: FloatArray, message: str
) -> None:
    with pytest.raises(FitnessError, match=message):
        fitness.judge(scores, targets)


def test_hidden_targets_cannot_be_ranked_by_any_function() -> None:
    scores, targets = np.arange(20.0), np.arange(20.0)
    targets[7] = np.nan
    for use in (
        correlation.spearman,
        correlation.top_precision,
        bootstrap.intervals,
        fitness.orient,
        lambda s, t: correlation.kendall_many(s[np.newaxis], t),
        lambda s, t: correlation.partial_spearman(s, t, s),
        lambda s, t: correlation.within_spearman(s, t, np.zeros(20, dtype=int)),
    ):
        with pytest.raises(FitnessError, match="target 7 is nan"):
            use(scores, targets)


def test_scores_that_are_not_finite_have_no_ranks() -> None:
    with pytest.raises(FitnessError, match="not finite have no ranks"):
        ranks.rank(np.array([1.0, np.inf]))
