"""The verdict over several tables, by hand: one sign for all, the lowest value, valid rows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from lpzero.discover.candidate import Candidate, Verdict
from lpzero.discover.objective import Objective
from lpzero.discover.settings import preset
from lpzero.judgement.measures import Measures
from lpzero.scores.columns import Columns
from primitives.errors import Rejected
from primitives.parser import parse

FORMULA = parse("sum(W)")


def objective(*results: Any, valid: tuple[float, ...] = (), **settings: Any) -> Objective:
    """An objective on tables that answer with these measures."""
    tables = [
        SimpleNamespace(
            measure=lambda formulas, found=found: [found],
            columns=Columns(),
            on_valid=lambda formula, measure, found=rho: found,
        )
        for found, rho in zip(results, valid or (0.0,) * len(results), strict=True)
    ]
    return Objective(tables, preset("default", **settings))  # type: ignore[arg-type]


def verdict(*results: Any, **settings: Any) -> Verdict | Rejected:
    [found] = objective(*results, **settings)([FORMULA])
    return found


def test_the_sign_makes_the_lowest_table_best() -> None:
    # The first table alone would ask for a minus.
    found = verdict(Measures(-0.1, 0.2, 0.3), Measures(0.6, 0.5, 0.4), across="min")
    assert found == Verdict(1, (Measures(-0.1, 0.2, 0.3), Measures(0.6, 0.5, 0.4)), (-0.1,))
    # And here for a plus.
    found = verdict(Measures(0.1, 0.2, 0.3), Measures(-0.6, 0.5, 0.4), across="min")
    assert isinstance(found, Verdict)
    assert found.sign == -1
    assert found.measures == (Measures(-0.1, -0.2, -0.3), Measures(0.6, -0.5, -0.4))
    assert found.fitness == (-0.1,)


def test_each_table_may_be_an_objective_of_its_own() -> None:
    found = verdict(
        Measures(0.3, 0.2, 0.1),
        Measures(0.7, 0.6, 0.5),
        across="pareto",
        objectives=("rho_given_params", "rho"),
    )
    assert isinstance(found, Verdict)
    assert found.fitness == (0.2, 0.6, 0.3, 0.7)


def test_a_formula_that_one_table_rejects_is_rejected() -> None:
    rejected = Rejected("constant-score", "every architecture has the same score")
    assert verdict(Measures(0.3, 0.2, 0.1), rejected) == rejected


def test_valid_is_the_lowest_over_the_tables() -> None:
    both = objective(Measures(0, 0, 0), Measures(0, 0, 0), valid=(0.75, 0.25))
    candidate = Candidate(0, 0, "random", (), "sum(W)", "sum(W)", 1, fitness=(0.5,))
    assert both.valid(candidate) == pytest.approx(0.25)


def test_train_is_the_first_objective_lowest_over_the_tables() -> None:
    measures = (Measures(0.9, 0.2, 0.5), Measures(0.4, 0.3, 0.6))
    candidate = Candidate(0, 0, "random", (), "sum(W)", measures=measures, fitness=(0.5,))
    both = objective(*measures, objectives=("rho_given_params", "rho"))
    assert both.train(candidate) == pytest.approx(0.2)
    assert objective(*measures).train(candidate) == pytest.approx(0.4)


def test_of_a_generation_each_formula_keeps_its_verdict() -> None:
    rejected = Rejected("constant-score", "every architecture has the same score")
    measures = [Measures(0.3, 0.2, 0.1), rejected, Measures(-0.5, 0.2, 0.1)]
    table = SimpleNamespace(measure=lambda formulas: measures)
    judge = Objective([table], preset("default"))  # type: ignore[list-item]
    formulas = [parse(text) for text in ("sum(W)", "sum(A)", "sum(G)")]
    assert judge(formulas) == [
        Verdict(1, (Measures(0.3, 0.2, 0.1),), (0.3,)),
        rejected,
        Verdict(-1, (Measures(0.5, -0.2, -0.1),), (0.5,)),
    ]
