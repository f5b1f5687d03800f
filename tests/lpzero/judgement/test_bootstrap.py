"""Bootstrap intervals: each resample against scipy, and the one seed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from lpzero.judgement import bootstrap
from lpzero.judgement.correlation import partial_spearman, spearman
from tests.lpzero.judgement.score_rows import kendall_resampled


@pytest.mark.parametrize("seed", range(3))
def test_resampled_correlations_equal_scipys_on_each_resample(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 12, 25).astype(float), rng.random(25)
    counts = bootstrap.draw_counts(25, 20)
    assert (counts.sum(axis=1) == 25).all()
    rho = bootstrap.spearman_resampled(counts, x, y)
    tau = kendall_resampled(counts, x, y)
    for row, r, t in zip(counts.astype(int), rho, tau, strict=True):
        a, b = np.repeat(x, row), np.repeat(y, row)
        assert r == pytest.approx(stats.spearmanr(a, b).statistic, abs=1e-12)
        assert t == pytest.approx(stats.kendalltau(a, b).statistic, abs=1e-12)


def test_the_interval_holds_the_value_and_is_the_same_each_time() -> None:
    rng = np.random.default_rng(2)
    targets = rng.random(100)
    scores = targets + 0.3 * rng.random(100)
    first, again = (bootstrap.intervals(scores, targets) for _ in range(2))
    assert first == again
    assert first.rho[0] < spearman(scores, targets) < first.rho[1]
    assert first.tau[0] < stats.kendalltau(scores, targets).statistic < first.tau[1]


def test_what_is_kept_of_targets_belongs_to_them() -> None:
    rng = np.random.default_rng(3)
    scores, targets = rng.random(30), rng.random((6, 30))
    apart = [bootstrap.intervals(scores, one) for one in targets]
    bootstrap._known_targets.clear()
    assert [bootstrap.intervals(scores, one) for one in targets[::-1]] == apart[::-1]
    assert len(set(apart)) == 6
    assert len(bootstrap._known_targets) == bootstrap._MOST_TARGETS


def test_resamples_are_drawn_in_one_stream() -> None:
    drawn = np.random.Generator(np.random.Philox(bootstrap.SEED)).integers(0, 37, (50, 37))
    expected = [np.bincount(one, minlength=37) for one in drawn]
    assert (bootstrap.draw_counts(37, 50) == expected).all()


def test_many_rows_are_resampled_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    every = bootstrap.draw_counts(2000, 30)
    monkeypatch.setattr(bootstrap, "_MOST_DRAWS", 24_000)
    monkeypatch.setattr(bootstrap, "_LEAST_RESAMPLES", 5)
    assert (bootstrap.draw_counts(2000, 30) == every[:12]).all()
    assert len(bootstrap.draw_counts(6000, 30)) == 5
    assert len(bootstrap.draw_counts(800, 30)) == 30


def test_resamples_in_parts_have_the_same_correlations(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    x, y = rng.integers(0, 20, 60).astype(float), rng.random(60)
    counts = bootstrap.draw_counts(60, 40)
    whole = bootstrap.spearman_resampled(counts, x, y)
    tau = kendall_resampled(counts, x, y)
    monkeypatch.setattr(bootstrap.large_resamples, "MANY", 59)
    for elements in (1, 7 * 60 + 5, 39 * 60):
        monkeypatch.setattr(bootstrap, "_ELEMENTS", elements)
        assert (bootstrap.spearman_resampled(counts, x, y) == whole).all()
        assert (kendall_resampled(counts, x, y) == tau).all()
    assert len(set(whole)) > 30


def test_the_partial_interval_is_that_of_a_loop_over_the_resamples() -> None:
    rng = np.random.default_rng(4)
    targets = rng.integers(0, 30, 25).astype(float)
    scores, given = targets + rng.normal(0, 8, 25), targets + rng.integers(0, 20, 25)
    drawn = []
    for counts in bootstrap.draw_counts(25, bootstrap.RESAMPLES).astype(int)[:200]:
        rows = np.repeat(np.arange(25), counts)
        drawn.append(partial_spearman(scores[rows], targets[rows], given[rows]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bootstrap, "RESAMPLES", 200)
        found = bootstrap.partial_interval(scores, targets, given)
    assert found == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=1e-12)
