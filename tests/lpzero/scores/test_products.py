"""The closed form of a product's correlation, its sign and its order, against the slow way."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats

from lpzero.judgement.measures import ONE_TABLE
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
    product_logs,
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
    tables = [Searched(np.stack([LOGS[0], LOGS[0]]), TARGET)]
    assert list(_distinct(both, tables)) == both[1:]


def test_products_of_one_rho_and_different_rankings_both_stay() -> None:
    ranks = np.arange(1.0, 7.0)
    first, second = ranks[[1, 0, 2, 3, 4, 5]], ranks[[0, 1, 3, 2, 4, 5]]
    tables = [Searched(np.stack([first, second, -first]), ranks)]
    products = [Factors(((term, Fraction(1)),)) for term in range(3)]
    ranked = rank_exactly(products, tables)
    assert len({round(one.value, 12) for one in ranked}) == 1
    # The third ranks as the first does, in reverse.
    assert [one.factors for one in _distinct(ranked, tables)] == products[:2]


def test_logarithms_of_many_products_are_those_of_each_by_itself() -> None:
    products = [
        Factors(tuple((int(term), EXPONENTS[term]) for term in RNG.permutation(4)[:n]))
        for n in (0, 3, 1, 4, 2)
    ]
    by_hand = [
        sum((float(e) * LOGS[t] for t, e in one.powers), start=np.zeros(12)) for one in products
    ]
    np.testing.assert_array_equal(product_logs(products, LOGS), np.stack(by_hand))


def test_a_search_leaves_out_what_a_comparison_one_by_one_leaves_out() -> None:
    rng = np.random.default_rng(3)
    tables = [Searched(rng.normal(size=(5, 4)), stats.rankdata(rng.normal(size=4))) for _ in "ab"]
    powers = product(range(5), range(5), EXPONENTS)
    pairs = [Factors(((a, Fraction(1)), (b, e))) for a, b, e in powers if a != b]
    ranked = rank_exactly(pairs, tables)
    kept, met = [], set()
    for one in ranked:
        orders = [stats.rankdata(one.sign * one.factors.logs(of.logs)) for of in tables]
        if str(orders) not in met:
            kept.append(one)
            met.add(str(orders))
    assert len(kept) < len(ranked)
    assert list(_distinct(ranked, tables)) == kept


@pytest.mark.parametrize("exact", [1, 2, 7, 40, 59])
def test_the_last_extension_is_as_good_as_all_that_are_left_out(exact: int) -> None:
    logs = np.random.default_rng(1).normal(size=(60, 12))
    table = _Centred.of(Searched(logs, TARGET))
    beam = Beam(exact=exact, exponents=(Fraction(1),))
    found = _best_extensions([Factors(())], [table], ONE_TABLE, beam)
    sizes = {term: abs(np.corrcoef(logs[term], TARGET)[0, 1]) for term in range(60)}
    best = sorted(sizes, key=lambda term: -sizes[term])[:exact]
    assert [one.powers[0][0] for one in found] == best


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
