"""A winner beside its rivals: who they are, on which rows, and the fields of a result."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from lpzero.arrays import FloatArray
from lpzero.judgement import counters
from lpzero.judgement.bootstrap import paired_difference
from lpzero.judgement.correlation import Stability
from lpzero.judgement.rivals import Contest, contest_fields, verdict
from lpzero.judgement.table import PARTS, TableJudge
from spaces.tables import split
from tests.lpzero.fixed_count import FixedCount
from tests.lpzero.small_campaign import table

FIELDS = ["count", "difference", "differences", "stability", "verdict"]


def opened(name: str = "made-up") -> TableJudge:
    made = table(name=name)
    return TableJudge(made, split(made, 0), with_test=True)


@pytest.fixture
def scores() -> FloatArray:
    return table().targets + np.random.default_rng(0).normal(size=len(table()))


def test_the_best_counter_is_chosen_on_train() -> None:
    judged = opened()
    name, found = judged.best_counter()
    on_train = {n: judged.rho(counters.score(n, judged.table), "train") for n in counters.names()}
    assert on_train[name] == max(map(abs, on_train.values()))
    assert np.array_equal(found, counters.score(name, judged.table))


def test_the_best_counters_sign_is_fitted_on_train() -> None:
    made = table()
    turned = replace(made, targets=-made.targets)
    name, found = opened().best_counter()
    negated = TableJudge(turned, opened().split).best_counter()
    assert negated[0] == f"-{name}"
    assert np.array_equal(negated[1], -found)


def test_choosing_it_does_not_open_the_test_rows() -> None:
    made = table()
    parts = split(made, 0)
    closed = TableJudge(parts.hide_test(made), parts)
    assert closed.best_counter()[0] == opened().best_counter()[0]
    assert not parts.is_open


def test_rivals_are_compared_on_the_rows_that_both_have(scores: FloatArray) -> None:
    judged = opened()
    rows = judged.parts["test"]
    holes, few = judged.parameters.copy(), np.full(len(scores), np.nan)
    holes[rows[2]] = np.nan
    few[rows[0]] = 1.0
    kept, targets = np.delete(rows, 2), judged.table.targets
    found = judged.compare(scores, {"all": judged.parameters, "holes": holes, "few": few})
    assert found == {
        "all": paired_difference(scores[rows], judged.parameters[rows], targets[rows]),
        "holes": paired_difference(scores[kept], holes[kept], targets[kept]),
    }
    train = judged.compare(scores, {"all": judged.parameters}, "train")["all"]
    assert train.n == len(judged.parts["train"])


def test_without_a_count_the_rival_is_the_best_counter(scores: FloatArray) -> None:
    judged = opened()
    name, rival = judged.best_counter()
    found = contest_fields([Contest(judged, scores)])
    assert list(found) == FIELDS
    assert (found["count"], found["stability"]) == (None, None)
    differences = judged.compare(scores, {name: rival})
    facts = {"table": "made-up", "against": name, "is_column": False}
    expected = {**facts, **differences[name].to_json()}
    assert found["difference"] == expected
    assert found["differences"] == [expected]
    assert found["verdict"] == verdict(judged.judge(scores)["test"], differences)


def test_the_difference_is_against_the_count_where_there_is_one(scores: FloatArray) -> None:
    judged = opened()
    count = FixedCount("sum(params)", judged.parameters)
    found = contest_fields([Contest(judged, scores, count, Stability(2, 0.99, 0.98))])
    assert list(found) == FIELDS
    assert found["count"] == {
        "formula": "sum(params)",
        "rho": judged.rhos(judged.parameters),
        "judged": {"made-up": judged.judge_chosen(judged.parameters)},
    }
    assert tuple(found["count"]["judged"]["made-up"]) == PARTS
    assert found["difference"]["against"] == counters.BEST_COUNT
    against = [line["against"] for line in found["differences"]]
    assert against == [counters.BEST_COUNT, judged.best_counter()[0]]
    assert found["stability"] == {"table": "made-up", "n": 2, "median": 0.99, "least": 0.98}
    assert "the best count" in found["verdict"]
    json.dumps(found, allow_nan=False)


def test_of_several_tables_the_lowest_counts_and_each_has_its_verdict(scores: FloatArray) -> None:
    one, other = opened(), opened("other")
    contests = [
        Contest(one, scores, FixedCount("sum(params)", one.parameters), Stability(1, 0.9, 0.9)),
        Contest(other, -scores, FixedCount("sum(ffn)", other.parameters), Stability(1, 0.8, 0.8)),
    ]
    found = contest_fields(contests)
    assert (found["difference"]["table"], found["stability"]["table"]) == ("other", "other")
    assert len(found["differences"]) == 4
    assert found["verdict_by_table"] == {c.table: c.verdict() for c in contests}
    assert all(f"{c.table}: {c.verdict()}" in found["verdict"] for c in contests)
    assert found["count"]["formula"] is None
    assert found["count"]["formula_by_table"] == {"made-up": "sum(params)", "other": "sum(ffn)"}
    both = [judged.rhos(judged.parameters)["test"] for judged in (one, other)]
    assert found["count"]["rho"]["test"] == min(both)


def test_without_a_winner_there_is_nothing_to_say() -> None:
    assert contest_fields([]) == {
        "count": None, "difference": None, "differences": [], "stability": None, "verdict": None,
    }  # fmt: skip
