"""The permutation floor: seeded, the same for any number of jobs, 0 where nothing leaks."""

from __future__ import annotations

import numpy as np
import pytest

from lpzero.arrays import FloatArray
from lpzero.errors import InputError
from lpzero.judgement.correlation import spearman_many
from lpzero.judgement.ranks import rank_targets
from lpzero.parallel import Workers
from lpzero.scores.floor import permutation_floor, permuted

N, N_TRAIN = 60, 30
CANDIDATES = np.random.default_rng(0).random((200, N))
TARGETS = np.random.default_rng(1).random(N)


def search(targets: FloatArray) -> tuple[float, float]:
    """The best of 200 random columns on the first rows, and its rho on the others."""
    train, test = (
        spearman_many(CANDIDATES[:, rows], rank_targets(targets[rows])).values
        for rows in (np.arange(N_TRAIN), np.arange(N_TRAIN, N))
    )
    best = int(np.argmax(np.abs(train)))
    return abs(train[best]), test[best] * np.sign(train[best])


def leaking(targets: FloatArray) -> tuple[float, float]:
    """A search that also sees the test rows."""
    rho = np.abs(spearman_many(CANDIDATES, rank_targets(targets)).values)
    return float(rho.max()), float(rho.max())


def test_a_search_fits_noise_and_tests_at_zero() -> None:
    # Many, because the interval of a mean of 20 misses 0 once in 20 seeds by right.
    found = permutation_floor(search, TARGETS, 200)
    assert found.permutations == len(found.fitted) == 200
    assert found.fit == pytest.approx(np.mean([fitted.fit for fitted in found.fitted]))
    assert found.fit_ci[0] < found.fit < found.fit_ci[1]
    assert found.fit_ci[0] > 0.3
    assert found.test_ci[0] < 0 < found.test_ci[1]


def test_a_leak_is_seen() -> None:
    assert permutation_floor(leaking, TARGETS, 10).test_ci[0] > 0


def test_neither_the_jobs_nor_the_order_change_anything() -> None:
    one = permutation_floor(search, TARGETS, 4, seed=3)
    assert permutation_floor(search, TARGETS, 4, seed=3, workers=Workers(2)) == one
    assert permutation_floor(search, TARGETS, 6, seed=3).fitted[:4] == one.fitted
    assert permutation_floor(search, TARGETS, 4, seed=4) != one


def test_a_permutation_keeps_the_targets() -> None:
    assert sorted(permuted(TARGETS, 0, 1)) == sorted(TARGETS)
    assert not np.array_equal(permuted(TARGETS, 0, 1), permuted(TARGETS, 0, 2))


def test_the_floor_is_plain_json() -> None:
    found = permutation_floor(search, TARGETS, 2).to_json()
    assert set(found) == {"permutations", "fit", "fit_ci", "test", "test_ci", "fitted"}
    assert set(found["fitted"][0]) == {"fit", "test"}


def test_one_permutation_has_no_interval() -> None:
    with pytest.raises(InputError, match="1 permutations were asked for; expected at least 2"):
        permutation_floor(search, TARGETS, 1)
