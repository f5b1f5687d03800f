"""Stored scores: those of the evaluator to the last bit, for any rows, recomputed when broken."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from lpzero.errors import WriteError
from lpzero.scores.branch_table import branch_table
from lpzero.scores.chains import surviving
from lpzero.scores.formula_rivals import ending, formula_rivals, stored_scores
from lpzero.scores.values import Values
from lpzero.sketches.builder import BuildReport, Sketches
from lpzero.sketches.sketch import SCHEMA, Sketch, address_of, encode
from lpzero.sketches.store import Store
from primitives.classics import CLASSICS
from primitives.parser import parse
from tests.lpzero.random_sketches import sketch

N = 4
TEXTS = [classic.text for classic in CLASSICS if classic.text is not None]
FORMULAS = [parse(text) for text in TEXTS]
OVERFLOWING = parse("sum(square(square(square(square(exp(exp(exp(exp(exp(W))))))))))")


@pytest.fixture
def stored(tmp_path: Path) -> Sketches:
    store, addresses = Store(tmp_path), []
    for seed in range(N):
        identity = {"schema": SCHEMA, "space": "drawn", "arch": seed, "options": {}}
        drawn = sketch(seed)
        addresses.append(str(address_of(identity)))
        named = Sketch({**drawn.header, **identity}, drawn.numbers)
        store.write("drawn", addresses[-1], encode(named))
    return Sketches(store, "drawn", addresses, BuildReport(N))


def files_of(sketches: Sketches) -> list[Path]:
    found = (
        sketches.store.path("drawn", name, ending(surviving(1))) for name in sketches.addresses
    )
    return [path for path in found if path.is_file()]


def computed(sketches: Sketches, rows: list[int] | None = None) -> np.ndarray:
    return Values(branch_table(sketches, surviving(1), rows)).scores(FORMULAS)


def forbid_computing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Values, "scores", lambda *_: pytest.fail("the scores were computed again"))


def test_scores_are_the_evaluators_and_are_computed_once(
    stored: Sketches, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = computed(stored)
    table = branch_table(stored, surviving(1))
    np.testing.assert_array_equal(stored_scores(table, FORMULAS), expected)
    assert len(files_of(stored)) == N
    some = branch_table(stored, surviving(1), [3, 1])
    forbid_computing(monkeypatch)
    np.testing.assert_array_equal(stored_scores(table, FORMULAS), expected)
    np.testing.assert_array_equal(stored_scores(some, FORMULAS[::-1]), expected[::-1, [3, 1]])


def test_a_new_row_or_formula_is_added_to_those_that_are_known(stored: Sketches) -> None:
    expected = computed(stored)
    few = branch_table(stored, surviving(1), [0, 2])
    stored_scores(few, FORMULAS[:5])
    assert len(files_of(stored)) == 2
    table = branch_table(stored, surviving(1))
    np.testing.assert_array_equal(stored_scores(table, FORMULAS[3:]), expected[3:])
    held = json.loads(files_of(stored)[0].read_text())["scores"]
    assert held.keys() == set(map(str, FORMULAS))


@pytest.mark.parametrize("damage", ["cut", "empty", "changed", "swapped"])
def test_a_broken_file_is_reported_and_computed_again(
    damage: str, stored: Sketches, caplog: pytest.LogCaptureFixture
) -> None:
    expected = computed(stored)
    table = branch_table(stored, surviving(1))
    stored_scores(table, FORMULAS)
    path, other = files_of(stored)[:2]
    whole = path.read_text()
    value = str(json.loads(whole)["scores"][str(FORMULAS[0])])
    changed = whole.replace(value, f"9{value}", 1)
    assert changed != whole
    damaged = {"cut": whole[:-9], "empty": "", "changed": changed, "swapped": other.read_text()}
    path.write_text(damaged[damage])
    np.testing.assert_array_equal(stored_scores(table, FORMULAS), expected)
    assert "computing the scores again" in caplog.text
    assert path.read_text() == whole


@pytest.mark.slow
def test_another_chain_set_has_its_own_files(stored: Sketches) -> None:
    """A product that is looked up and one that is computed differ in their last bits."""
    table = branch_table(stored, surviving(1))
    stored_scores(table, FORMULAS)
    other = branch_table(stored, surviving(2))
    np.testing.assert_array_equal(stored_scores(other, FORMULAS), Values(other).scores(FORMULAS))
    assert len(list(stored.store.folder.rglob("*.scores.json"))) == 2 * N


def test_a_rejected_formula_is_rejected_again(stored: Sketches) -> None:
    table = branch_table(stored, surviving(1))
    for _ in range(2):
        first, second = stored_scores(table, [OVERFLOWING, FORMULAS[0]])
        assert np.isnan(first).all()
        assert np.isfinite(second).all()
    held = json.loads(files_of(stored)[0].read_text())["scores"]
    assert list(held) == [str(FORMULAS[0])]


def test_a_cache_that_cannot_be_written_costs_a_warning(
    stored: Sketches, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise WriteError("cannot write: the disk is full")

    expected = computed(stored)
    monkeypatch.setattr("lpzero.scores.formula_rivals.write_bytes", refuse)
    table = branch_table(stored, surviving(1))
    np.testing.assert_array_equal(stored_scores(table, FORMULAS), expected)
    assert "computed again next time" in caplog.text


def test_rivals_are_the_same_with_and_without_a_store(stored: Sketches) -> None:
    plain = formula_rivals(branch_table(list(stored), surviving(1)), "sum(W)", {})
    for _ in range(2):
        found = formula_rivals(branch_table(stored, surviving(1)), "sum(W)", {})
        assert [one.name for one in found] == [one.name for one in plain]
        assert len(found) == len(TEXTS) + 1
        for one, other in zip(found, plain, strict=True):
            np.testing.assert_array_equal(one.scores, other.scores)
