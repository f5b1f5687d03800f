"""Networks without attention: formulas that read S are rejected by name, all others are scored."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from lpzero.exhaust.report import _unread
from lpzero.exhaust.results import Results
from lpzero.exhaust.shards import ShardFiles, ShardTask, family_scorer
from lpzero.judgement.measures import RankMeasures
from lpzero.scores.branch_table import branch_table, decode, encode, rows_of
from lpzero.scores.chains import surviving
from lpzero.scores.tabulation import tabulate
from lpzero.scores.terms import term_table
from lpzero.scores.values import Values
from lpzero.sketches.builder import build_sketch
from lpzero.sketches.sketch import (
    Sketch,
    SketchError,
    SketchOptions,
)
from lpzero.sketches.sketch import (
    decode as read,
)
from lpzero.sketches.sketch import (
    encode as write,
)
from primitives.errors import Rejected
from primitives.naive import score
from primitives.parser import parse
from primitives.tensors import number
from spaces.nlp_rnn import RnnSpace

SPACE = RnnSpace(name="small", embedding=4, hidden=6, vocabulary=12, batch_shape=(3, 5))
CHAINS = surviving(1)


@pytest.fixture(scope="module")
def sketches() -> list[Sketch]:
    rng = random.Random(4)
    cells = [SPACE.sample(rng) for _ in range(6)]
    return [build_sketch(SPACE, cell, SketchOptions()) for cell in cells]


def test_a_sketch_without_attention_survives_its_file(sketches: list[Sketch]) -> None:
    again = read(write(sketches[0]))
    assert [again.matrices(block, "S") for block in range(3)] == [[], [], []]
    [made] = tabulate([again], CHAINS)
    stored = decode(encode(made, CHAINS, "address"), CHAINS, "address")
    assert stored.counts["S"] == (0, 0, 0)
    np.testing.assert_array_equal(stored.means["H"], made.means["H"])


def test_a_space_that_has_attention_cannot_lack_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RnnSpace, "absent_statistics", frozenset())
    with pytest.raises(SketchError, match="statistic S of block 0 is empty"):
        build_sketch(SPACE, SPACE.sample(random.Random(0)), SketchOptions())


@pytest.mark.parametrize("text", ["sum(S)", "mean(add(S, W))", "mul(sum(W), last(l1(S)))"])
def test_formulas_with_attention_are_rejected_by_name(text: str, sketches: list[Sketch]) -> None:
    found = Values(branch_table(sketches, CHAINS)).score(parse(text))
    assert isinstance(found, Rejected)
    assert found.rule == "missing-statistic"
    assert "S" in str(found)


@pytest.mark.parametrize("text", ["sum(mul(abs(G), abs(W)))", "mean(add(square(H), fro(A)))",
                                  "mul(inner(l1(J)), sqrt(sum(heads)))"])  # fmt: skip
def test_other_formulas_are_scored_as_by_the_naive_reference(
    text: str, sketches: list[Sketch]
) -> None:
    found = Values(branch_table(sketches, CHAINS)).score(parse(text))
    expected = []
    for sketch in sketches:
        assert sketch.sizes is not None
        blocks = [
            {name: sketch.matrices(block, name) for name in "AJGHW"}
            | {name: number(value) for name, value in sketch.sizes["blocks"][block].items()}
            for block in range(3)
        ]
        expected.append(score(parse(text), blocks))
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_terms_and_families_leave_attention_out(sketches: list[Sketch], tmp_path: Path) -> None:
    table = rows_of(branch_table(sketches, CHAINS), np.arange(6))
    assert table.absent == {"S"}
    terms = [str(term) for term in term_table(Values(table)).terms]
    assert len(terms) > 50
    assert not any("S" in text for text in terms)
    shards = ShardFiles(tmp_path, "run")
    results = Results(shards, 1, False)
    measures = RankMeasures(np.arange(6.0), np.arange(6.0) + 1, np.zeros(6, dtype=np.int64))
    task = ShardTask(family_scorer(table), measures, results.families, shards, 1 << 24)
    for item in results.missing():
        task(item)
    evaluated = results.counts[0]
    counted = _unread(results, table)["missing-statistic"]
    assert evaluated + counted == 2 * sum(map(len, results.families))
    assert 0 < counted < evaluated
