"""Levels of several tables: terms that all have, tables left out against a naive search."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

from lpzero.discover.levels import COUNTER, RELIABLE, ReliableTerms
from lpzero.discover.shared_levels import MEMBERS, choose_shared, reads_words, shared_levels
from lpzero.scores.terms import TermTable
from primitives.formula import Column
from primitives.parser import parse

SIZES = (40, 30, 35)
NAMES = ("depth", "parameters")


def reliable(n: int, seed: int, reliability: float = 1.0) -> tuple[ReliableTerms, np.ndarray]:
    """Two counters and two terms of statistics; the target follows the first term's square."""
    drawn = np.random.default_rng(seed)
    logs = drawn.normal(size=(4, n)) + 10.0 * seed  # tables differ in scale
    (first,) = parse("sum(l1(A))").terms
    (second,) = parse("sum(l1(W))").terms
    terms = (*map(Column, NAMES), first, second)
    table = TermTable(terms, np.exp(logs), frozenset(NAMES))
    repeats = np.array([1.0, 1.0, reliability, reliability])
    return ReliableTerms(table, repeats, repeats, frozenset(NAMES)), logs


def tables(
    reliability: float = 1.0, follows: int = 2
) -> tuple[list[ReliableTerms], list[np.ndarray], list[np.ndarray]]:
    made = [reliable(n, seed, reliability) for seed, n in enumerate(SIZES)]
    noise = np.random.default_rng(9)
    targets = [logs[follows] + 0.3 * noise.normal(size=logs.shape[1]) for _, logs in made]
    rows = [np.arange(0, n - 5) for n in SIZES]
    return [of for of, _ in made], targets, rows


def test_a_term_that_ranks_every_table_left_out_is_taken() -> None:
    terms, targets, rows = tables()
    choice = choose_shared(shared_levels(terms), targets, rows)
    assert choice is not None
    assert choice.chosen != COUNTER
    best = choice.level.best(targets, rows, 1)[0]
    assert "sum(l1(A))" in str(choice.level.formula(best))
    assert choice.line.rho > 0.85


def test_a_counter_is_taken_where_it_ranks_every_table_left_out() -> None:
    terms, targets, rows = tables(follows=1)
    choice = choose_shared(shared_levels(terms), targets, rows)
    assert choice is not None
    assert choice.chosen == COUNTER
    assert str(choice.level.formula(choice.level.best(targets, rows, 1)[0])) == "parameters"


def test_a_term_must_be_reliable_on_every_table() -> None:
    terms, *_ = tables()
    weak, _ = reliable(SIZES[1], 1, reliability=0.5)
    levels = shared_levels([terms[0], weak, terms[2]])
    assert {level.n_terms for level in levels} == {2}


@pytest.mark.parametrize("place", range(len(SIZES)))
def test_the_counter_for_a_table_left_out_is_that_of_the_least_regret_on_the_others(
    place: int,
) -> None:
    terms, targets, rows = tables(follows=1)
    level = shared_levels(terms)[0]
    assert level.name == COUNTER
    rhos = np.array(
        [
            [stats.spearmanr(log[on], of[on])[0] for log in of_table.table.logs[:2]]
            for of_table, of, on in zip(terms, targets, rows, strict=True)
        ]
    )  # (tables, counters)
    others = [other for other in range(len(SIZES)) if other != place]
    own = np.abs(rhos).max(axis=1)
    regrets = {
        (counter, sign): min(
            len(rows[other]) ** 0.5 * (sign * rhos[other, counter] - own[other]) for other in others
        )
        for counter, sign in product(range(2), (1, -1))
    }
    counter, sign = max(regrets, key=lambda of: regrets[of])
    [chosen] = level.left_out(targets, rows)[place]
    naive = sign * terms[place].table.logs[counter]
    assert stats.spearmanr(level.on[place].scores(chosen), naive)[0] == pytest.approx(1.0)


def test_the_product_taken_ranks_most_like_the_twenty_of_the_least_regret() -> None:
    terms, targets, rows = tables()
    targets = [np.random.default_rng(4).permutation(of) for of in targets]
    level = next(of for of in shared_levels(terms) if of.name == RELIABLE)
    found = level.best(targets, rows, MEMBERS)
    assert len(found) == MEMBERS
    by_regret = sorted(found, key=lambda product: -product.value)
    assert found[0] != by_regret[0]
    assert found[1:] == [product for product in by_regret if product != found[0]]
    agreement = np.zeros(MEMBERS)
    for on, of_rows in zip(level.on, rows, strict=True):
        ranks = np.stack([stats.rankdata(on.scores(product)[of_rows]) for product in found])
        agreement += [stats.pearsonr(of, ranks.mean(axis=0))[0] for of in ranks]
    assert int(np.argmax(agreement)) == 0
    assert level.best(targets, rows, 1) == found[:1]


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("parameters", True),
        ("flops", False),
        ("embedding(params)", True),
        ("embedding(width)", False),
        ("sum(params)", False),
        ("head(l1(W))", True),
        ("embedding(l1(A))", False),
        ("sum(l1(G))", False),
    ],
)
def test_what_counts_or_reads_words(text: str, reads: bool) -> None:
    (atom,) = parse(text).atoms
    assert reads_words(atom) == reads


def test_the_line_is_the_mean_over_tables_with_its_error() -> None:
    terms, targets, rows = tables()
    choice = choose_shared(shared_levels(terms), targets, rows)
    assert choice is not None
    rhos = [
        stats.spearmanr(choice.scores(place)[place][on], of_table[on])[0]
        for place, (of_table, on) in enumerate(zip(targets, rows, strict=True))
    ]
    assert choice.line.rho == pytest.approx(np.mean(rhos))
    assert choice.line.error == pytest.approx(0.02, abs=0.02)


def test_targets_of_a_table_left_out_do_not_change_its_scores() -> None:
    terms, targets, rows = tables()
    level = next(of for of in shared_levels(terms) if of.name == RELIABLE)
    changed = [*targets[:2], np.random.default_rng(3).permutation(targets[2])]
    before, after = (level.left_out(of, rows, 3) for of in (targets, changed))
    assert len(before[2]) == 3
    assert before[2] == after[2]
    assert before[:2] != after[:2]
