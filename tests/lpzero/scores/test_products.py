"""The closed form of a product's correlation, its sign and its order, against the slow way."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats

from lpzero.judgement.across import ONE_TABLE
from lpzero.scores.products import (
    EXPONENTS,
    Beam,
    Factors,
    Found,
    Searched,
    _best_extensions,
    _Centred,
    _distinct,
    is_new_pair,
    rank_exactly,
    search,
)

RNG = np.random.default_rng(0)
COMMON = RNG.normal(size=12)
LOGS = np.stack([COMMON + RNG.normal(size=12) * size for size in (0.1, 0.3, 1.0, 2.0)])
TARGET = stats.rankdata(COMMON + 0.5 * LOGS[3] + 0.2 * RNG.normal(size=12))


def test_extensions_come_in_the_order_of_their_correlation() -> None:
    current = [Factors(((0, Fraction(1)),)), Factors(((1, Fraction(-2)),))]
    tables = [_Centred.of(Searched(LOGS, TARGET))]
    found = _best_extensions(current, tables, ONE_TABLE, Beam(exact=1000))

    def size(one: Factors) -> float:
        return abs(float(np.corrcoef(one.logs(LOGS), TARGET)[0, 1]))

    sizes = [size(one) for one in found]
    assert sizes == sorted(sizes, reverse=True)
    every = [
        size(one.times(term, exponent))
        for one, term, exponent in product(current, range(4), EXPONENTS)
        if term != one.powers[0][0]
    ]
    assert sizes[0] == pytest.approx(max(every))
    # Products of equal ranking are there once.
    assert len(found) == len({round(value, 9) for value in every})


def test_a_product_that_ranks_in_reverse_has_a_sign() -> None:
    up, down = Factors(((0, Fraction(1)),)), Factors(((0, Fraction(-1)),))
    ranks = stats.rankdata(LOGS[0])
    assert rank_exactly([up], [Searched(LOGS, ranks)]) == [Found(up, 1.0, 1, (1.0,))]
    assert rank_exactly([down], [Searched(LOGS, ranks)]) == [Found(down, 1.0, -1, (1.0,))]


def test_of_products_that_rank_alike_the_shorter_stays() -> None:
    short, long = Factors(((0, Fraction(1)),)), Factors(((0, Fraction(1)), (1, Fraction(1))))
    both = [Found(long, 0.9, 1, (0.9,)), Found(short, 0.9, 1, (0.9,))]
    assert _distinct(both) == both[1:]


def test_a_search_finds_the_best_pair() -> None:
    best = search(LOGS, TARGET)[0]
    pairs = [
        abs(stats.spearmanr(LOGS[a] + float(e) * LOGS[b], TARGET).statistic)
        for a, b, e in product(range(4), range(4), EXPONENTS)
        if a != b
    ]
    assert best.value >= max(pairs) - 1e-12


def test_a_root_makes_a_pair_of_each_order_new() -> None:
    first, second = np.array([0, 1, 1]), np.array([1, 0, 1])
    assert is_new_pair(first, second, Fraction(1)).tolist() == [True, False, False]
    assert is_new_pair(first, second, Fraction(-1)).tolist() == [True, False, False]
    assert is_new_pair(first, second, Fraction(1, 2)).tolist() == [True, True, False]
