"""Products of two terms by closed form, and the floor of a search over products."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from lpzero.arrays import FloatArray
from lpzero.judgement.ranks import rank_targets
from lpzero.scores.floor import ProductFloor, permutation_floor
from lpzero.scores.products import (
    PAIR_EXPONENTS,
    Beam,
    Factors,
    PairScreen,
    Searched,
    is_new_pair,
    rank_exactly,
    search,
)

T, N = 30, 40
LOGS = np.random.default_rng(0).normal(size=(T, N)).cumsum(axis=0)  # neighbours correlate
TARGETS = LOGS[3] - 0.5 * LOGS[20] + np.random.default_rng(1).normal(size=N)
ROWS = np.arange(N)
TRAIN, KNOWN, TEST = ROWS[:20], ROWS[:28], ROWS[28:]


def pairs() -> list[tuple[int, int, Fraction]]:
    return [
        (first, second, exponent)
        for exponent in PAIR_EXPONENTS
        for first in range(T)
        for second in range(T)
        if is_new_pair(np.array(first), np.array(second), exponent)
    ]


@pytest.mark.slow
def test_the_closed_form_is_the_correlation_of_the_logarithms() -> None:
    screen, ranks = PairScreen.of(LOGS), rank_targets(TARGETS)
    with_target = screen.with_target(ranks)
    found = {e: screen.correlations(with_target, 0, T, e) for e in PAIR_EXPONENTS}
    assert (
        sum(int((values >= 0).sum()) for values in found.values())
        == len(pairs())
        == 3 * T * (T - 1)
    )
    for first, second, exponent in pairs():
        plain = np.corrcoef(LOGS[first] + float(exponent) * LOGS[second], ranks)[0, 1]
        assert found[exponent][first, second] == pytest.approx(abs(plain), abs=1e-9)


def test_a_constant_product_correlates_with_nothing() -> None:
    screen = PairScreen.of(np.stack([LOGS[0], LOGS[0] + 3.0]))
    found = screen.correlations(screen.with_target(rank_targets(TARGETS)), 0, 2, Fraction(-1))
    assert found.tolist() == [[-1.0, 0.0], [-1.0, -1.0]]


@pytest.mark.slow
def test_the_best_pairs_are_those_of_a_plain_loop() -> None:
    ranks, one = rank_targets(TARGETS), Fraction(1)
    every = [Factors(((first, one), (second, power))) for first, second, power in pairs()]
    plain = rank_exactly(every, [Searched(LOGS, ranks)])
    found = PairScreen.of(LOGS).best(ranks, exact=len(every))
    assert [f.value for f in found] == [f.value for f in plain]
    few = PairScreen.of(LOGS).best(ranks, exact=50)
    assert len(few) == 50
    assert few[0] == plain[0]


def floor_of(targets: FloatArray, rows: FloatArray = TRAIN) -> ProductFloor:
    find = partial(search, LOGS[:, rows], beam=Beam(factors=2))
    return ProductFloor(find, LOGS, rows, KNOWN, TEST)


@pytest.mark.slow
def test_a_search_of_products_fits_noise_and_tests_at_zero() -> None:
    found = permutation_floor(floor_of(TARGETS), TARGETS, 60)
    assert found.fit_ci[0] > 0.2
    assert found.test_ci[0] < 0 < found.test_ci[1]
    real = floor_of(TARGETS)(TARGETS)
    assert real.fit > max(fitted.fit for fitted in found.fitted)
    assert real.test > found.test_ci[1]


def test_the_winner_is_the_best_on_the_rows_it_is_chosen_on() -> None:
    found = search(LOGS[:, TRAIN], rank_targets(TARGETS[TRAIN]), Beam(factors=2))
    on_known = Searched(LOGS[:, KNOWN], rank_targets(TARGETS[KNOWN]))
    known = rank_exactly([f.factors for f in found], [on_known])
    assert floor_of(TARGETS)(TARGETS).fit == pytest.approx(known[0].value)


def test_a_search_that_finds_nothing_fits_nothing() -> None:
    nothing = ProductFloor(lambda ranks: [], LOGS, TRAIN, KNOWN, TEST)
    assert nothing(TARGETS) == (0.0, 0.0)
