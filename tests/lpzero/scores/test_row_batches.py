"""Scores of batches of rows: bit for bit those of all rows at once, with less in memory."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import spaces
from lpzero.scores import row_batches
from lpzero.scores.chains import bare_chains, surviving
from lpzero.scores.evaluator import FormulaEvaluator
from lpzero.scores.row_batches import RowBatches, scorer_of
from lpzero.sketches.builder import Builder, sketches
from lpzero.sketches.store import Store
from primitives.classics import CLASSICS
from primitives.parser import parse
from primitives.rejection import Rejected
from spaces.tables.table import make_table
from tests.lpzero import random_sketches

FORMULAS = [parse(one.text) for one in CLASSICS if one.text is not None] + [
    parse(text)
    for text in (
        "sum(softmax(sigmoid(relu(H))))",
        "-mean(mul(sqrt(abs(W)), sigmoid(G)))",
        "mul(sum(l1(exp(W))), inverse(last(fro(softmax(A)))))",
        "mul(sqrt(last(neg(H))), sum(params))",
        "mul(sqrt(embedding(fro(W))), sum(params))",
    )
]


@pytest.mark.parametrize("n_rows", [1, 4, 9, 100])
@pytest.mark.parametrize("unaries", [0, 1])
def test_batches_have_the_scores_of_all_rows(n_rows: int, unaries: int) -> None:
    made = [random_sketches.sketch(seed, 1 + seed % 3) for seed in range(9)]
    whole = FormulaEvaluator(made, surviving(1) if unaries else bare_chains())
    batches = RowBatches(made, whole.table.chains, n_rows, whole.table)
    rejected = 0
    found = batches.scores(FORMULAS)
    for formula, of_batches in zip(FORMULAS, found, strict=True):
        expected = whole.score(formula)
        if isinstance(expected, Rejected):
            rejected += 1
            assert of_batches == expected
            assert batches.score(formula) == expected
        else:
            assert not isinstance(of_batches, Rejected)
            assert of_batches.tobytes() == expected.tobytes()
    assert 1 <= rejected < len(FORMULAS) - 3


def test_only_large_tables_are_scored_in_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    space, rng = spaces.get("nano-gpt2"), random.Random(0)
    rows = [(str(i), space.sample(rng), float(i)) for i in range(6)]
    table = make_table("made-up", space, rows, "made up", "none")
    stored = sketches(table, Builder(store=Store(tmp_path)))
    branches = FormulaEvaluator(stored, bare_chains()).table
    whole = scorer_of(stored, branches.chains, branches)
    assert isinstance(whole, FormulaEvaluator)
    monkeypatch.setattr(row_batches, "MEMORY", stored.report.bytes)
    assert isinstance(scorer_of(stored, branches.chains, branches), FormulaEvaluator)
    monkeypatch.setattr(row_batches, "MEMORY", stored.report.bytes * 2 // 3 + 1)
    monkeypatch.setattr(row_batches, "_BATCHES", 2)
    batched = scorer_of(stored, branches.chains, branches)
    assert isinstance(batched, RowBatches)
    assert batched.n_rows == 2
    held = _rows_held(monkeypatch)
    formula = parse("sum(sigmoid(W))")
    assert np.array_equal(batched.score(formula), whole.score(formula))  # type: ignore[arg-type]
    assert held == [2, 2, 2]


def _rows_held(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each evaluator gathers from now on."""
    held: list[int] = []

    class Counted(FormulaEvaluator):
        def __init__(self, *words: object, **more: object) -> None:
            super().__init__(*words, **more)  # type: ignore[arg-type]
            held.append(self.n_archs)

    monkeypatch.setattr(row_batches, "FormulaEvaluator", Counted)
    return held
