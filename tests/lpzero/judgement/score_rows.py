"""Score vectors of every kind for the tests of ranks, correlations and judgements."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from lpzero.arrays import FloatArray
from lpzero.judgement import bootstrap

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


def kendall_resampled(counts: FloatArray, x: FloatArray, y: FloatArray) -> FloatArray:
    """Tau-b of x and y (n,) in each resample (R,), as the intervals of judgements have it."""
    return np.concatenate([one.tau for one in bootstrap._correlations(counts, x, y)])
