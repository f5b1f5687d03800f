"""The lines of a result over two tables, and which candidate wins, by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lpzero.discover import report
from lpzero.discover.candidate import Candidate
from lpzero.discover.report import _ScoredCandidate, choose, choose_stable, passed_over
from lpzero.judgement.measures import Across
from lpzero.scores import formula_rivals
from primitives.canonical import canonical
from primitives.parser import parse

TEXTS = ("sum(W)", "sum(A)", "sum(G)")


def candidate(number: int, fitness: float, complexity: int = 1) -> Candidate:
    text = TEXTS[number % 3]
    return Candidate(number, 4, "random", (), text, text, complexity, fitness=(fitness,))


def judged(name: str, **rhos: float) -> Any:
    return SimpleNamespace(
        table=SimpleNamespace(name=name),
        rhos=lambda scores: rhos,
        judge_chosen=lambda scores, *parts: {part: {"of": name} for part in parts},
    )


def test_a_line_has_the_lowest_rho_of_each_part_and_those_of_each_table() -> None:
    tables = [
        judged("one", train=0.9, valid=0.5, test=0.7),
        judged("two", train=0.8, valid=0.6, test=0.4),
    ]
    of_tables = [(one, np.zeros(3)) for one in tables]
    line = _ScoredCandidate(candidate(1, 0.3), parse("sum(A)"), of_tables).line()
    assert line["rho"] == {"train": 0.8, "valid": 0.5, "test": 0.4}
    assert line["rho_by_table"]["one"] == {"train": 0.9, "valid": 0.5, "test": 0.7}
    assert line["judged"] == {"one": {"test": {"of": "one"}}, "two": {"test": {"of": "two"}}}
    assert (line["fitness"], line["id"], line["generation"], line["sign"]) == ([0.3], 1, 4, 1)
    alone = _ScoredCandidate(candidate(1, 0.3), parse("sum(A)"), of_tables[:1]).line()
    assert "rho_by_table" not in alone
    assert alone["rho"]["test"] == 0.7


def fitness(rhos: list[float], agreements: list[float]) -> Any:
    """A table on which the candidates have these rhos, and scores that repeat so well."""
    n, k = 12, len(rhos)
    scores = np.tile(np.arange(float(n)), (k, 1))
    repeated = np.stack([_moved(n, agreement) for agreement in agreements])
    return SimpleNamespace(
        table=range(n),
        values=SimpleNamespace(scores=lambda formulas: scores),
        second_seed=SimpleNamespace(scores=lambda formulas: repeated),
        train_valid_rho=lambda found: np.array(rhos),
    )


def _moved(n: int, agreement: float) -> Any:
    """Scores in order if they agree, else in reverse."""
    return np.arange(float(n)) if agreement == 1 else np.arange(float(n))[::-1]


def objective(*tables: Any, valid: dict[int, float] | None = None, how: str = "stable") -> Any:
    settings = SimpleNamespace(choose=how, stable=0.99)
    found = valid or {}
    return SimpleNamespace(
        settings=settings,
        rule=how,
        canonical=canonical,
        scores=lambda formulas, on: on.values.scores(formulas),
        tables_fitness=tables,
        across_known=Across("min"),
        valid=lambda one: found[one.id],
    )


def test_a_stable_candidate_is_stable_on_every_table_and_best_on_the_lowest() -> None:
    everyone = [candidate(0, 0.9), candidate(1, 0.8), candidate(2, 0.7)]
    one = fitness([0.9, 0.6, 0.7], [1, 1, 1])
    two = fitness([0.9, 0.8, 0.5], [0, 1, 1])  # the first does not repeat here
    assert [c.id for c in choose_stable(objective(one, two), everyone)] == [1, 2]


def test_a_better_formula_that_does_not_repeat_is_named() -> None:
    everyone = [candidate(0, 0.9), candidate(1, 0.8), candidate(2, 0.7)]
    asked = objective(fitness([0.9, 0.6, 0.7], [0, 1, 1]))
    assert [c.id for c in choose_stable(asked, everyone)] == [2, 1]
    found = passed_over(asked, everyone, everyone[2])
    assert found is not None
    assert (found["rho"], found["rho_chosen"], found["stability"]) == (0.9, 0.7, -1.0)
    assert passed_over(asked, everyone, everyone[0]) is None


@pytest.mark.parametrize(("how", "order"), [("train", [0, 1, 2]), ("valid", [2, 0, 1])])
def test_the_winner_is_chosen_on_the_rows_that_were_asked_for(how: str, order: list[int]) -> None:
    entries = (candidate(0, 0.9, 3), candidate(1, 0.8, 2), candidate(2, 0.7, 1))
    outcome: Any = SimpleNamespace(
        hall=SimpleNamespace(entries=entries, front=entries), state=SimpleNamespace(population=())
    )
    asked = objective(valid={0: 0.4, 1: 0.3, 2: 0.5}, how=how)
    assert [c.id for c in choose(asked, outcome).candidates] == order


def test_published_rivals_are_scored_some_rows_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 5
    asked: list[str] = []

    def in_batches(formulas: Any, table: Any, workers: Any) -> Any:
        asked.extend(map(str, formulas))
        return np.tile(np.arange(float(n)), (len(formulas), 1))

    monkeypatch.setattr(formula_rivals, "scores_in_batches", in_batches)
    # Every row at once is for the winner alone.
    whole = SimpleNamespace(
        scores=lambda formulas: np.zeros((1, n)), table=SimpleNamespace(sketches=[])
    )
    on_table = SimpleNamespace(values=whole, workers=None)
    table = SimpleNamespace(table=SimpleNamespace(name="one", space="nano"), parts={})
    monkeypatch.setattr(report, "_opened", lambda tables, objective: [table])
    monkeypatch.setattr(report.counters, "factors", lambda table: {})
    monkeypatch.setattr(report, "rival_lines", lambda judged, values, rivals: rivals)
    monkeypatch.setattr(report, "column", lambda table, parts, values, lines: lines)
    result = {"best": {"formula": "sum(W)"}}
    sheet = report.scores((), objective(on_table), result)
    assert asked
    assert len(sheet["tables"]["one"]) == len(asked)
