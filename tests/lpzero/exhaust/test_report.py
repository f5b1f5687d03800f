"""Which of the best formulas on train is chosen: by valid, then the simpler, never by test."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import spaces
from lpzero.exhaust.report import choose
from lpzero.exhaust.results import Entry, Query
from lpzero.judgement.measures import Measures
from primitives.errors import NON_FINITE, Rejected
from primitives.parser import parse
from spaces.tables import split
from spaces.tables.table import Table, make_table

N = 40


@pytest.fixture(scope="module")
def table() -> Table:
    space = spaces.get("nano-gpt2")
    rng = random.Random(0)
    rows = [(str(i), space.sample(rng), rng.random()) for i in range(N)]
    return make_table("made-up", space, rows, "made up", "none")


def scores_with(table: Table, swaps: dict[str, int]) -> Any:
    """The targets, with so many neighbours by target swapped in each part."""
    parts = split(table, 0)
    rows = {"train": parts.train, "valid": parts.valid, "test": parts.open_test()}
    scores = table.targets.copy()
    for part, n in swaps.items():
        order = rows[part][np.argsort(table.targets[rows[part]])]
        for i in range(0, 2 * n, 2):
            scores[[order[i], order[i + 1]]] = scores[[order[i + 1], order[i]]]
    return scores


def chosen(table: Table, candidates: list[tuple[str, float, Any]]) -> list[str]:
    """The formulas in the order in which they are chosen, from (text, value, scores)."""
    entries = [
        Entry(parse(text), value, Measures(value, 0.0, 0.0)) for text, value, _ in candidates
    ]
    scores = {text: found for text, _, found in candidates}
    results: Any = SimpleNamespace(best=lambda query: entries)
    evaluator: Any = SimpleNamespace(score=lambda formula: scores[str(formula)])
    parts = split(table, 0)
    found = choose(parts.hide_test(table), parts, results, evaluator, Query(top=3))
    return [str(entry.formula) for entry, _ in found]


def test_valid_breaks_a_tie_on_train_and_train_and_test_have_no_say(table: Table) -> None:
    worse_on_valid = scores_with(table, {"train": 1, "valid": 2, "test": 0})
    better_on_valid = scores_with(table, {"train": 4, "valid": 1, "test": 5})
    candidates = [("sum(W)", 0.9, worse_on_valid), ("sum(G)", 0.9 + 1e-12, better_on_valid)]
    assert chosen(table, candidates) == ["sum(G)", "sum(W)"]
    assert chosen(table, candidates[::-1]) == ["sum(G)", "sum(W)"]


def test_train_comes_before_valid_and_the_simpler_after_it(table: Table) -> None:
    good, bad = scores_with(table, {"valid": 0}), scores_with(table, {"valid": 3})
    candidates = [
        ("sum(exp(W))", 0.8, good),
        ("sum(W)", 0.8, good),
        ("sum(A)", 0.9, bad),
    ]
    assert chosen(table, candidates) == ["sum(A)", "sum(W)", "sum(exp(W))"]


def test_a_formula_that_is_not_finite_off_train_is_passed_over(table: Table) -> None:
    rejected = Rejected(NON_FINITE, "an architecture")
    good = scores_with(table, {"valid": 0})
    assert chosen(table, [("sum(W)", 0.9, rejected), ("sum(G)", 0.8, good)]) == ["sum(G)"]
