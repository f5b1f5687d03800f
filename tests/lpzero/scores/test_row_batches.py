"""Scores of batches of rows: bit for bit those of all rows at once, with less in memory."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spaces
from lpzero.parallel import Workers
from lpzero.scores import row_batches
from lpzero.scores.chains import bare_chains, surviving
from lpzero.scores.evaluator import FormulaEvaluator
from lpzero.scores.row_batches import RowBatches, scorer_of
from lpzero.sketches.builder import Builder, Sketches, sketches
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


@pytest.fixture
def stored(tmp_path: Path) -> Sketches:
    space, rng = spaces.get("nano-gpt2"), random.Random(0)
    rows = [(str(i), space.sample(rng), float(i)) for i in range(6)]
    table = make_table("made-up", space, rows, "made up", "none")
    return sketches(table, Builder(store=Store(tmp_path)))


@pytest.mark.slow
def test_workers_have_the_scores_of_one_process_and_broken_sketches_are_rebuilt(
    stored: Sketches, monkeypatch: pytest.MonkeyPatch
) -> None:
    formulas = [parse("sum(sigmoid(W))"), parse("mul(sum(fro(H)), embedding(fro(W)))")]
    expected = np.stack(FormulaEvaluator(stored, bare_chains()).scores(formulas))  # type: ignore[arg-type]
    path = stored.store.path(stored.space, stored.addresses[4])
    path.write_bytes(path.read_bytes()[:-1])
    monkeypatch.setattr(row_batches, "_PER_JOB", 1)
    monkeypatch.setattr(row_batches, "_LEAST_SENT", 3)
    scorer = scorer_of(stored, bare_chains(), workers=Workers(2))
    assert isinstance(scorer, RowBatches)
    assert scorer.n_rows == 2
    np.testing.assert_array_equal(scorer.scores(formulas), expected)


def test_batches_are_joined_in_the_order_of_their_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [random_sketches.sketch(seed) for seed in range(4)]
    whole = FormulaEvaluator(made, bare_chains())
    batches = RowBatches(made, bare_chains(), 1, whole.table)
    expected = batches.scores(FORMULAS[-5:-4])

    def backwards(task: Any, items: Sequence[range], *_: object) -> Iterator[tuple[int, Any]]:
        return ((i, task(items[i])) for i in reversed(range(len(items))))

    monkeypatch.setattr(row_batches, "stream", backwards)
    np.testing.assert_array_equal(batches.scores(FORMULAS[-5:-4]), expected)


def test_only_large_tables_are_scored_in_batches(
    stored: Sketches, monkeypatch: pytest.MonkeyPatch
) -> None:
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
