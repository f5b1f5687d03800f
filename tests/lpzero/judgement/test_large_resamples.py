"""The way without a matrix of pairs gives the bits of the way with one."""

import numpy as np
import pytest

from lpzero.judgement import bootstrap, large_resamples
from lpzero.judgement.correlation import kendall_many
from tests.lpzero.judgement.score_rows import kendall_resampled


@pytest.mark.parametrize("n_levels", [3, 40, 10_000])
def test_both_ways_to_resample_agree_bit_for_bit(n_levels, monkeypatch):
    rng = np.random.default_rng(n_levels)
    x, y = (rng.integers(0, n_levels, 120).astype(float) for _ in range(2))
    counts = bootstrap.draw_counts(120, 50)
    plain = kendall_resampled(counts, x, y), bootstrap.spearman_resampled(counts, x, y)
    monkeypatch.setattr(large_resamples, "MANY", 100)
    tau, rho = kendall_resampled(counts, x, y), bootstrap.spearman_resampled(counts, x, y)
    assert np.array_equal(tau, plain[0])
    assert np.array_equal(rho, plain[1])


@pytest.mark.parametrize("n_levels", [1, 3, 10_000])
def test_tau_of_many_rows_is_the_same_bit_for_bit(n_levels, monkeypatch):
    rng = np.random.default_rng(n_levels)
    scores = rng.integers(0, n_levels, (3, 120)).astype(float)
    scores[1, 7] = np.nan
    targets = rng.integers(0, 50, 120).astype(float)
    plain = kendall_many(scores, targets)
    monkeypatch.setattr(large_resamples, "MANY", 100)
    for found, expected in zip(kendall_many(scores, targets), plain, strict=True):
        assert np.array_equal(found, expected)
