"""Terms, scores of several terms and the searches over products, against slow references."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from scipy.stats import rankdata

from lpzero.judgement.correlation import spearman
from lpzero.judgement.measures import Across
from lpzero.judgement.ranks import rank_targets
from lpzero.scores.branch_table import (
    BranchTable,
    assemble,
    branch_table,
    decode,
    encode,
    rows_of,
    state_sizes,
)
from lpzero.scores.chains import surviving
from lpzero.scores.products import (
    PAIR_EXPONENTS,
    Beam,
    Factors,
    Searched,
    is_new_pair,
    search,
    search_tables,
)
from lpzero.scores.tabulation import tabulate
from lpzero.scores.terms import (
    BLOCK_REDUCTIONS,
    COUNTS,
    TermLanguage,
    _distinct,
    shared_term_tables,
    stable_term_tables,
    term_table,
    values_of,
)
from lpzero.scores.values import Values
from primitives.errors import Rejected
from primitives.formula import Formula
from primitives.naive import score
from primitives.parser import parse
from tests.lpzero.random_sketches import network_of, sketch
from tests.random_formulas import COLUMNS as NAMES
from tests.random_formulas import random_score

SKETCHES = [sketch(seed, 1 + seed % 4) for seed in range(8)]
COLUMNS = {name: np.arange(2.0, 10.0) for name in NAMES}


@pytest.fixture(scope="module")
def evaluator() -> Values:
    return Values(branch_table(SKETCHES, surviving(1)))


TEXTS = [
    *(f"{reduction}(fro(W))" for reduction in (*BLOCK_REDUCTIONS, "embedding", "head")),
    "inner(sqrt(params))",
    "last(mul(params, fro(G)))",
    "embedding(mul(abs(W), abs(G)))",
    "head(params)",
    "embedding(sqrt(width))",
    "mul(inner(l1(abslog(J))), sqrt(inner(sqrt(params))), inverse(sqrt(sum(sqrt(softmax(S))))))",
    "-mul(sum(l1(W)), inverse(last(fro(G))), depth)",
    "add(sqrt(sum(params)), log(head(fro(A))))",
]


@pytest.mark.parametrize("text", TEXTS)
def test_any_formula_scores_as_the_reference_does(text: str, evaluator: Values) -> None:
    formula = parse(text)
    found = evaluator.beside(COLUMNS).score(formula)
    assert not isinstance(found, Rejected)
    for index, (one, value) in enumerate(zip(SKETCHES, found, strict=True)):
        columns = {name: column[index] for name, column in COLUMNS.items()}
        assert value == pytest.approx(score(formula, network_of(one), columns=columns), rel=1e-5)


@pytest.mark.slow
def test_random_scores_are_those_of_the_reference(evaluator: Values) -> None:
    rng, compared = random.Random(0), 0
    for _ in range(150):
        formula = random_score(rng)
        found = evaluator.beside(COLUMNS).score(formula)
        expected = [
            score(formula, network_of(one), columns={n: c[i] for n, c in COLUMNS.items()})
            for i, one in enumerate(SKETCHES)
        ]
        if isinstance(found, Rejected):
            assert any(isinstance(value, Rejected) for value in expected), formula
            continue
        values = [value for value in expected if not isinstance(value, Rejected)]
        if len(values) == len(expected):
            np.testing.assert_allclose(found, values, rtol=1e-4, atol=1e-9, err_msg=str(formula))
            compared += 1
    assert compared > 50


def test_a_branch_file_keeps_ends_and_sizes() -> None:
    chains = surviving(1)
    [made] = tabulate([SKETCHES[2]], chains)
    read = decode(encode(made, chains, "x"), chains, "x")
    assert read.sizes == made.sizes
    assert made.ends.keys() == read.ends.keys()
    for position, values in made.ends.items():
        np.testing.assert_array_equal(read.ends[position], values)


def test_terms_have_the_values_of_their_formulas(evaluator: Values) -> None:
    table = term_table(evaluator)
    assert len(table) > 200
    reductions = {term.reduction for term in table.terms}  # type: ignore[union-attr]
    assert reductions == {*BLOCK_REDUCTIONS, "embedding", "head"}
    for term, values in list(zip(table.terms, table.values, strict=True))[::7]:
        found = evaluator.score(Formula.of_base(term))
        assert not isinstance(found, Rejected)
        np.testing.assert_allclose(np.abs(found), values, rtol=1e-9, err_msg=str(term))


def test_counts_need_sizes_alone(evaluator: Values) -> None:
    table = term_table(evaluator.beside({"depth": COLUMNS["depth"]}), COUNTS)
    assert all("W" not in str(term) for term in table.terms)
    assert "inner(params)" in map(str, table.terms)


def _logs(n_terms: int, n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n_terms, n))


def all_pairs(n_terms: int) -> list[tuple[int, int, Fraction]]:
    first, second = np.meshgrid(np.arange(n_terms), np.arange(n_terms), indexing="ij")
    return [
        (int(a), int(b), e)
        for e in PAIR_EXPONENTS
        for a, b in np.argwhere(is_new_pair(first, second, e))
    ]


def test_pairs_hold_every_product_of_two_once() -> None:
    found = all_pairs(7)
    assert len(found) == len(set(found)) == 3 * 7 * 6
    ratios = set()
    for a, b, exponent in found:
        ratios.add((a, b, exponent))
        ratios.add((b, a, 1 / exponent))
    wanted = {Fraction(s) for s in (1, -1, 2, -2)} | {Fraction(1, 2), Fraction(-1, 2)}
    assert ratios == {(a, b, e) for a, b in product(range(7), repeat=2) if a != b for e in wanted}


@pytest.mark.slow
def test_a_wide_beam_finds_the_best_product_of_two() -> None:
    logs, target = _logs(12, 30, 0), np.random.default_rng(1).normal(size=30)
    ranks = rank_targets(target)
    best = max(
        abs(spearman(np.exp(logs[a] + float(e) * logs[b]), target)) for a, b, e in all_pairs(12)
    )
    found = search(logs, ranks, Beam(factors=2, width=12, exact=2000))
    assert found[0].value == pytest.approx(best)
    assert all(a.value >= b.value for a, b in pairwise(found))
    rankings = {tuple(rankdata(kept.sign * kept.factors.logs(logs))) for kept in found}
    assert len(rankings) == len(found) > 100


def test_more_factors_are_never_worse_and_the_planted_product_is_found() -> None:
    logs = _logs(40, 60, 2)
    target = logs[3] - 0.5 * logs[11] + 2 * logs[29]
    ranks = rank_targets(target)
    by_factors = [search(logs, ranks, Beam(factors=k))[0].value for k in (1, 2, 3)]
    assert by_factors == sorted(by_factors)
    best = search(logs, ranks, Beam(factors=3))[0]
    assert best.value == pytest.approx(1.0)
    assert {term for term, _ in best.factors.powers} == {3, 11, 29}


def test_a_product_of_terms_is_the_formula_it_says(evaluator: Values) -> None:
    table = term_table(evaluator, TermLanguage(ends=False))
    rng = random.Random(3)
    exponents = (Fraction(1), Fraction(-1, 2), Fraction(2), Fraction(-1))
    for _ in range(30):
        picked = rng.sample(range(len(table)), 4)
        factors = Factors(tuple(zip(picked, exponents, strict=True)))
        found = evaluator.score(factors.formula(table))
        assert not isinstance(found, Rejected)
        np.testing.assert_allclose(np.log(np.abs(found)), factors.logs(table.logs), rtol=1e-6)


def test_an_architecture_without_sizes_leaves_the_table_without_them() -> None:
    chains = surviving(1)
    parts = tabulate(SKETCHES[:2], chains)
    without = type(parts[0])(parts[0].counts, parts[0].means, parts[0].products)
    table = assemble([without, parts[1]], chains)
    assert (table.sizes, table.end_sizes, table.ends) == ({}, {}, {})
    found = Values(table).score(parse("inner(params)"))
    assert isinstance(found, Rejected)
    assert found.rule == "missing-size"


def test_a_head_without_parameters_is_rejected_and_not_an_error() -> None:
    chains = surviving(1)
    table = assemble(tabulate(SKETCHES[:2], chains), chains)
    table = replace(table, sketches=SKETCHES, rows=[0, 1])
    table.end_sizes["head", "params"][:] = 0.0
    found = Values(table).score(parse("head(sqrt(params))"))
    assert isinstance(found, Rejected)
    assert found.rule == "missing-end"
    _, end_sizes = state_sizes(
        [{"blocks": [{"params": 3}], "ends": {"head": {"params": n, "width": 4}}} for n in (0, 2)]
    )
    assert list(end_sizes) == [("head", "width")]


def test_a_wide_beam_finds_the_best_product_of_two_for_two_tables() -> None:
    logs = [_logs(10, n, seed) for seed, n in enumerate((30, 24))]
    targets = [np.random.default_rng(9 + i).normal(size=of.shape[1]) for i, of in enumerate(logs)]
    across = Across("regret", [0.8, 0.5])
    by_hand = []
    for a, b, e in all_pairs(10):
        rhos = [
            spearman(of[a] + float(e) * of[b], target)
            for of, target in zip(logs, targets, strict=True)
        ]
        by_hand.append(max(min(s * rhos[0] - 0.8, s * rhos[1] - 0.5) for s in (1, -1)))
    tables = [Searched(of, rank_targets(t)) for of, t in zip(logs, targets, strict=True)]
    best = next(search_tables(tables, across, Beam(factors=2, width=10, exact=3000)))
    singles = [max(min(s * spearman(logs[0][t], targets[0]) - 0.8,
                       s * spearman(logs[1][t], targets[1]) - 0.5) for s in (1, -1))
               for t in range(10)]  # fmt: skip
    assert best.value == pytest.approx(max(*by_hand, *singles))
    for of, target, rho in zip(logs, targets, best.rhos, strict=True):
        assert spearman(best.sign * best.factors.logs(of), target) == pytest.approx(rho)


def test_tables_share_terms_and_keep_those_that_repeat(evaluator: Values) -> None:
    first = rows_of(evaluator.table, np.arange(4))
    other = rows_of(evaluator.table, np.arange(4, 8))
    one, two = shared_term_tables([Values(first), Values(other)])
    assert one.terms == two.terms
    assert len(one) > 100
    for table, branches in ((one, first), (two, other)):
        np.testing.assert_array_equal(
            table.values, np.abs(values_of(table.terms, Values(branches)))
        )
    missing = values_of([parse("sum(log(exp(sqrt(W))))")], Values(first))  # type: ignore[list-item]
    assert np.isnan(missing).all()
    # Other networks: the sizes repeat, the statistics do not.
    again = BranchTable(first.chains, first.n_blocks, first.counts, {
        name: np.random.default_rng(0).permuted(means, axis=1)
        for name, means in first.means.items()
    }, {}, {}, first.sizes, first.end_sizes)  # fmt: skip
    (kept,) = stable_term_tables([(Values(first), Values(again))], TermLanguage(), 0.999)
    (everything,) = stable_term_tables([(Values(first), None)], TermLanguage(), 0.999)
    sizes = [str(t) for t in everything.terms if not set("AJGHWS") & set(str(t))]
    assert sizes
    assert set(sizes) <= {str(term) for term in kept.terms}
    assert len(kept) < len(everything) / 2


def test_terms_that_differ_by_a_factor_or_a_power_are_one() -> None:
    rng = np.random.default_rng(2)
    one, other = rng.uniform(1, 9, size=(2, 20))
    columns = {"one": one, "tripled": 3 * one, "squared": one**2, "inverted": 1 / one}
    columns |= {"other": other, "both": one * other}
    found = term_table(Values(columns=columns))
    assert [str(term) for term in found.terms] == ["one", "other", "both"]


def test_the_depth_is_known_without_a_column(evaluator: Values) -> None:
    """The best count of a table may name it."""
    found = evaluator.score(parse("mul(depth, sum(params))"))
    blocks, params = (evaluator.score(parse(text)) for text in ("depth", "sum(params)"))
    assert not isinstance(blocks, Rejected)
    assert blocks.tolist() == [one.n_blocks for one in SKETCHES]
    np.testing.assert_allclose(found, blocks * params)


def test_of_terms_whose_logarithms_agree_up_to_shift_and_factor_the_first_is_kept() -> None:
    one, other = np.random.default_rng(5).normal(size=(2, 12))
    logs = np.stack([one, 2.5 * one + 3, other, -0.5 * one, other + 1e-3 * one, 1 - 4 * other])
    assert _distinct(logs).tolist() == [0, 2, 4]
