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
from lpzero.scores.branch_table import BranchTable, branch_table
from lpzero.scores.chains import bare_chains, surviving
from lpzero.scores.row_batches import batch_size, scores_in_batches
from lpzero.scores.values import Values
from lpzero.sketches.builder import Builder, Sketches, sketches
from lpzero.sketches.store import Store
from primitives.classics import CLASSICS
from primitives.errors import Rejected
from primitives.parser import parse
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


@pytest.mark.slow
@pytest.mark.parametrize("n_rows", [1, 4, 9, 100])
@pytest.mark.parametrize("unaries", [0, 1])
@pytest.mark.parametrize("with_table", [True, False])
def test_batches_have_the_scores_of_all_rows(
    n_rows: int, unaries: int, with_table: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [random_sketches.sketch(seed, 1 + seed % 3) for seed in range(9)]
    table = branch_table(made, surviving(1) if unaries else bare_chains())
    monkeypatch.setattr(row_batches, "batch_size", lambda *_: n_rows)
    in_batches = scores_in_batches(FORMULAS, table if with_table else (made, table.chains))
    rejected = 0
    for formula, scores in zip(FORMULAS, in_batches, strict=True):
        expected = Values(table).score(formula)
        if isinstance(expected, Rejected):
            rejected += 1
            assert np.isnan(scores).all()
        else:
            assert scores.tobytes() == expected.tobytes()
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
    table = branch_table(stored, bare_chains())
    expected = Values(table).scores(formulas)
    path = stored.store.path(stored.space, stored.addresses[4])
    path.write_bytes(path.read_bytes()[:-1])
    monkeypatch.setattr(row_batches, "_PER_JOB", 1)
    monkeypatch.setattr(row_batches, "_LEAST_SENT", 3)
    assert batch_size(stored, Workers(2)) == 2
    source = stored, bare_chains()
    np.testing.assert_array_equal(scores_in_batches(formulas, source, Workers(2)), expected)
    np.testing.assert_array_equal(scores_in_batches(formulas, table, Workers(2)), expected)


def test_batches_are_joined_in_the_order_of_their_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [random_sketches.sketch(seed) for seed in range(4)]
    table = branch_table(made, bare_chains())
    monkeypatch.setattr(row_batches, "batch_size", lambda *_: 1)
    expected = scores_in_batches(FORMULAS[-5:-4], table)

    def backwards(task: Any, items: Sequence[range], *_: object) -> Iterator[tuple[int, Any]]:
        return ((i, task(items[i])) for i in reversed(range(len(items))))

    monkeypatch.setattr(row_batches, "stream", backwards)
    np.testing.assert_array_equal(scores_in_batches(FORMULAS[-5:-4], table), expected)


def test_some_rows_of_a_table_are_scored_as_in_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [random_sketches.sketch(seed) for seed in range(5)]
    formula = [parse("sum(softmax(sigmoid(relu(H))))")]
    expected = Values(branch_table(made, bare_chains())).scores(formula)[:, [4, 1, 2]]
    monkeypatch.setattr(row_batches, "batch_size", lambda *_: 2)
    some = scores_in_batches(formula, branch_table(made, bare_chains(), [4, 1, 2]))
    np.testing.assert_array_equal(some, expected)


@pytest.mark.slow
def test_only_large_tables_are_scored_in_batches(
    stored: Sketches, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = branch_table(stored, bare_chains())
    formula = [parse("sum(sigmoid(W))")]
    expected = Values(table).scores(formula)
    assert batch_size(stored, Workers()) == 6
    monkeypatch.setattr(row_batches, "MEMORY", stored.report.bytes)
    held = _rows_held(monkeypatch)
    np.testing.assert_array_equal(scores_in_batches(formula, table), expected)
    monkeypatch.setattr(row_batches, "MEMORY", stored.report.bytes * 2 // 3 + 1)
    monkeypatch.setattr(row_batches, "_BATCHES", 2)
    np.testing.assert_array_equal(scores_in_batches(formula, table), expected)
    assert held == [6, 2, 2, 2]


def _rows_held(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each `Values` gather from now on."""
    held: list[int] = []

    class Counted(Values):
        def __init__(self, table: BranchTable) -> None:
            super().__init__(table)
            held.append(table.n_archs)

    monkeypatch.setattr(row_batches, "Values", Counted)
    return held
