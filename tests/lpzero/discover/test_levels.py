"""Levels: folds, cross-validation against a naive one, the choice, and what it says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from lpzero.discover.levels import (
    COUNT,
    COUNTER,
    LEVELS,
    RELIABLE,
    SIZE,
    STABLE,
    LearningCurve,
    Level,
    LevelLine,
    LevelLines,
    ReliableTerms,
    choose_level,
    influence,
    learning_sentence,
    levels,
    mean_over_seeds,
    row_folds,
    standard_error,
)
from lpzero.judgement.correlation import spearman
from lpzero.scores.terms import TermTable
from primitives.formula import Column, Term
from primitives.parser import parse

pytestmark = pytest.mark.usefixtures("_searched_whole")

N = 60


def terms_of(seed: int = 0, n: int = N, noise: float = 0.05) -> tuple[ReliableTerms, Any]:
    """A counter, two sizes and four statistics of one network each; the last repeats badly."""
    rng = np.random.default_rng(seed)
    logs = rng.normal(size=(7, n))
    texts = ("sum(params)", "sum(heads)", "sum(l1(W))", "sum(l1(A))", "mean(l1(G))", "mean(l1(H))")
    terms = [Column("parameters"), *(parse(text).term for text in texts)]
    assert all(isinstance(term, (Column, Term)) for term in terms)
    table = TermTable(tuple(terms), np.exp(logs), frozenset({"parameters"}))
    again = logs + rng.normal(size=logs.shape) * np.array([0, 0, 0, 0, noise, noise, 5])[:, None]
    of = ReliableTerms.of(table, np.exp(again), np.arange(n), frozenset({"parameters"}))
    return of.averaged_with([np.exp(again)]), logs


def names(level: Level) -> list[str]:
    return [str(term) for term in level.terms.terms]


def test_levels_admit_more_and_more_terms() -> None:
    terms, _ = terms_of()
    found = {level.name: names(level) for level in levels(terms)}
    assert tuple(found) == LEVELS
    assert found[COUNTER] == ["parameters"]
    assert found[COUNT] == ["parameters", "sum(params)", "sum(heads)"]
    assert found[STABLE] == [*found[COUNT], "sum(l1(W))"]
    assert found[RELIABLE] == [*found[STABLE], "sum(l1(A))", "mean(l1(G))"]


def test_values_are_means_of_logarithms_over_seeds() -> None:
    terms, logs = terms_of()
    assert np.array_equal(terms.table.logs[0], np.log(np.exp(logs[0])))
    assert not np.allclose(terms.table.logs[4], logs[4])
    one, two = np.exp(logs[:2]), np.exp(logs[2:4])
    product = mean_over_seeds(np.stack([one * two, one * two**2]))
    assert np.allclose(product, one * two**1.5)
    changing = np.stack([logs[:1], logs[1:2]])
    assert np.array_equal(mean_over_seeds(changing), changing.mean(axis=0))


def test_few_rows_of_a_second_seed_tell_which_terms_repeat() -> None:
    both, logs = terms_of(n=400)
    rng = np.random.default_rng(7)
    rows = np.sort(rng.permutation(400)[:30])
    noise = np.array([0, 0, 0, 0, 0.05, 0.05, 5])[:, None]
    again = np.exp(logs[:, rows] + rng.normal(size=(7, 30)) * noise)
    table = TermTable(both.table.terms, np.exp(logs), both.table.positive)
    few = ReliableTerms.of(table, again, rows, both.counters)
    assert np.array_equal(few.table.logs, np.log(np.exp(logs)))  # one seed: nothing is averaged
    assert names(few.level(RELIABLE)) == names(both.level(RELIABLE))
    assert few.reliability == pytest.approx(both.reliability, abs=0.35)


def test_of_terms_that_correlate_the_first_is_kept() -> None:
    terms, _ = terms_of()
    doubled = TermTable(
        (*terms.table.terms, parse("last(params)").term),
        np.concatenate([terms.table.values, terms.table.values[1:2] ** -2]),
        terms.table.positive,
    )
    both = ReliableTerms(doubled, np.ones(8), np.ones(8), terms.counters)
    assert names(both.level(COUNT)) == ["parameters", "sum(params)", "sum(heads)"]


@pytest.mark.parametrize(("n", "times"), [(40, 2), (99, 2), (100, 1)])
def test_every_row_is_left_out_once_and_twins_together(n: int, times: int) -> None:
    rows = np.arange(5, 5 + n)
    units = [row // 3 for row in range(n + 10)]
    folded = list(row_folds(rows, units, 7))
    assert len(folded) == times
    for folds in folded:
        assert sorted(np.concatenate([out for _, out in folds]).tolist()) == rows.tolist()
        for searched, out in folds:
            assert sorted([*searched, *out]) == rows.tolist()
            assert not {units[row] for row in searched} & {units[row] for row in out}
    again = list(row_folds(rows, units, 7))
    assert str(again) == str(folded)
    assert str(list(row_folds(rows, units, 8))) != str(folded)


@pytest.mark.slow
def test_the_influence_of_a_row_is_what_leaving_it_out_changes() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    y = x + rng.normal(size=400)
    measured = influence(x, y)
    assert measured.rho == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)
    assert measured.moves.mean() == pytest.approx(0, abs=1e-12)
    left_out = [
        (len(x) - 1) * (measured.rho - spearman(np.delete(x, i), np.delete(y, i)))
        for i in range(0, 400, 10)
    ]
    assert np.corrcoef(left_out, measured.moves[::10])[0, 1] > 0.9
    resampled = [spearman(x[rows], y[rows]) for rows in rng.integers(0, 400, size=(300, 400))]
    assert standard_error(measured.moves) == pytest.approx(np.std(resampled), rel=0.5)


def naive_rho(level: Level, targets: Any, rows: Any, units: Any, seed: int) -> float:
    """The same in loops: each row's share of the scores searched that are below its own."""
    rhos = []
    for folds in row_folds(rows, units, seed):
        shares = {}
        for searched, left_out in folds:
            scores = level.scores(level.best(targets, searched, 1)[0])
            for row in left_out:
                below = sum(float(scores[other] < scores[row]) for other in searched)
                equal = sum(float(scores[other] == scores[row]) for other in searched)
                shares[int(row)] = (below + equal / 2) / len(searched)
        ordered = np.array([shares[int(row)] for row in rows])
        rhos.append(stats.spearmanr(ordered, targets[rows]).statistic)
    return float(np.mean(rhos))


@pytest.mark.slow
def test_cross_validation_is_that_of_the_plain_definition() -> None:
    terms, logs = terms_of()
    targets = logs[4] - logs[1] + np.random.default_rng(1).normal(size=N) * 0.3
    targets[45:] = np.nan  # rows that must not be read
    rows, units = np.arange(45), list(range(N))
    choice = choose_level(levels(terms), targets, rows, units, 3)
    assert choice.level.name == RELIABLE
    for level, line in zip(levels(terms), choice.lines, strict=True):
        assert line.rho == pytest.approx(naive_rho(level, targets, rows, units, 3), abs=1e-12)
    best = choice.level.formula(choice.level.best(targets, rows, 1)[0])
    assert {"mean(l1(A))", "sum(l1(A))"} & {str(term) for term in best.terms}


@pytest.mark.slow
def test_the_simplest_of_equals_is_taken() -> None:
    terms, logs = terms_of()
    targets = -logs[0] + np.random.default_rng(1).normal(size=N) * 0.1
    choice = choose_level(levels(terms), targets, np.arange(N), list(range(N)), 0)
    assert choice.level.name == COUNTER
    best = choice.level.best(targets, np.arange(N), 1)[0]
    assert str(choice.level.formula(best)) == "-parameters"
    assert choice.expectation(0.99)["warning"] is None


@pytest.mark.slow
def test_permuted_targets_end_at_a_counter_and_it_says_that_nothing_holds() -> None:
    taken, warned = [], []
    for seed in range(6):
        terms, _ = terms_of(seed, 40)
        targets = np.random.default_rng(100 + seed).permutation(40).astype(float)
        choice = choose_level(levels(terms), targets, np.arange(40), list(range(40)), seed)
        taken.append(choice.level.name)
        warned.append("nothing holds" in str(choice.expectation(0.5)["warning"]))
    assert taken.count(COUNTER) >= 5
    assert sum(warned) >= 5


def line(name: str, rho: float, error: float = 0.02) -> LevelLine:
    return LevelLine(name, 1, rho, error, 0.0, 0.0)


@pytest.mark.parametrize(
    ("lines", "fit", "said"),
    [
        ([line(COUNTER, 0.03)], 0.4, "nothing holds"),
        ([line(COUNTER, 0.5)], 0.9, "expect far less than the fit: 0.500 ± 0.020"),
        ([line(COUNTER, 0.5), line(COUNT, 0.51)], 0.52, "too few to tell"),
        ([line(COUNTER, 0.5)], 0.52, None),
    ],
)
def test_an_expectation_warns(lines: list[LevelLine], fit: float, said: str | None) -> None:
    warning = LevelLines(tuple(lines), COUNTER).expectation(fit)["warning"]
    assert warning is None if said is None else said in warning


def test_what_a_level_admits() -> None:
    terms, _ = terms_of()
    formulas = [parse("sum(params)"), parse("sum(l1(W))"), parse("sum(l1(A))")]
    rng = np.random.default_rng(2)
    logs = rng.normal(size=(3, N))
    again = logs + rng.normal(size=(3, N)) * np.array([0, 0.2, 2.0])[:, None]
    scores = np.exp(logs), np.exp(again)
    admitted = {name: terms.level(name).admits(formulas, *scores).tolist() for name in LEVELS}
    assert admitted[COUNTER] == [False, False, False]
    assert admitted[SIZE] == admitted[COUNT] == [True, False, False]
    assert admitted[STABLE] == [True, False, False]
    assert admitted[RELIABLE] == [True, True, False]
    negated = -scores[0], -scores[1]
    assert terms.level(RELIABLE).admits(formulas, *negated).tolist() == [True, True, False]
    counts = [parse(t) for t in ("parameters", "mul(parameters, sum(heads))", "latency")]
    for name, inside in ((COUNTER, [True, False, False]), (COUNT, [True, True, False])):
        assert terms.level(name).admits(counts, *scores).tolist() == inside


@pytest.mark.slow
def test_a_learning_curve_reads_fewer_rows_and_the_same_test_rows() -> None:
    terms, logs = terms_of(n=90)
    targets = logs[3] + logs[1]
    rows, test = np.arange(60), np.arange(60, 90)
    of = levels(terms)
    choice = choose_level(of, targets, rows, list(range(90)), 0)
    assert choice is not None
    curve = LearningCurve(choice.level, of, targets, rows, test, list(range(90)), 0)
    assert curve.sizes == [10, 20, 30, 60]
    points = [curve(n) for n in curve.sizes]
    assert [point["n"] for point in points] == curve.sizes
    assert points[-1]["rho"] == pytest.approx(1.0)
    assert curve(20) == points[1]
    assert points[-1]["level"] == choice.level.name


def test_a_learning_curve_has_no_point_where_nothing_differs() -> None:
    terms, logs = terms_of(n=90)
    rows, test = np.arange(60), np.arange(60, 90)
    whole = terms.level(COUNTER)
    curve = LearningCurve(whole, [], logs[3], rows, test, list(range(90)), 0)
    assert curve(10) is None


@pytest.mark.parametrize(
    ("rhos", "said"),
    [
        ([0.3, 0.895, 0.9], "From 20 rows on"),
        ([0.3, 0.6, 0.8], "still rises by 0.200"),
        ([0.3, 0.8, 0.6], "falls by 0.200"),
        ([0.3], "too few"),
    ],
)
def test_a_learning_curve_in_a_sentence(rhos: list[float], said: str) -> None:
    points = [{"n": 10 * (i + 1), "rho": rho} for i, rho in enumerate(rhos)]
    assert said in learning_sentence(points)


def test_without_a_term_that_differs_there_is_no_choice() -> None:
    assert choose_level([], np.arange(20.0), np.arange(20), list(range(20)), 0) is None
