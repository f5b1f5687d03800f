"""The way without a matrix of pairs gives the bits of the way with one."""

import numpy as np
import pytest

from lpzero.judgement import bootstrap, large_resamples


@pytest.mark.parametrize("n_levels", [3, 40, 10_000])
def test_both_ways_to_resample_agree_bit_for_bit(n_levels, monkeypatch):
    rng = np.random.default_rng(n_levels)
    x, y = (rng.integers(0, n_levels, 120).astype(float) for _ in range(2))
    counts = bootstrap.draw_counts(120, 50)
    plain = bootstrap.kendall_resampled(counts, x, y), bootstrap.spearman_resampled(counts, x, y)
    monkeypatch.setattr(large_resamples, "MANY", 100)
    tau, rho = bootstrap.kendall_resampled(counts, x, y), bootstrap.spearman_resampled(counts, x, y)
    assert np.array_equal(tau, plain[0])
    assert np.array_equal(rho, plain[1])
