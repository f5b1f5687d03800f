"""A judged table: its parts, its test rows, missing scores, and counters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lpzero.arrays import FloatArray
from lpzero.errors import FitnessError
from lpzero.judgement import counters
from lpzero.judgement.correlation import spearman
from lpzero.judgement.judgement import judge
from lpzero.judgement.table import PARTS, SPLIT_PARTS, TableJudge
from spaces.errors import UnknownNameError
from spaces.tables import split
from tests.lpzero.small_campaign import table

TABLE = table()


def opened() -> TableJudge:
    return TableJudge(TABLE, split(TABLE, 0), with_test=True)


@pytest.fixture
def scores() -> FloatArray:
    return TABLE.targets + np.random.default_rng(0).normal(size=len(TABLE))


def test_every_part_is_judged_on_its_rows_in_one_order(scores: FloatArray) -> None:
    judged, parts = opened(), split(TABLE, 0)
    found = judged.judge(scores)
    assert tuple(found) == PARTS
    assert tuple(judged.rhos(scores)) == tuple(judged.facts["n"]) == SPLIT_PARTS
    expected = {"train": parts.train, "valid": parts.valid, "test": parts.open_test(),
                "all": np.arange(len(TABLE))}  # fmt: skip
    sizes, groups = counters.score("parameters", TABLE), TABLE.groups("depth-width")
    for part, rows in expected.items():
        assert found[part] == judge(scores[rows], TABLE.targets[rows], sizes[rows], groups[rows])
        assert judged.rho(scores, part) == spearman(scores[rows], TABLE.targets[rows])


def test_groups_may_be_those_of_a_column(scores: FloatArray) -> None:
    kind = np.arange(len(TABLE)) % 3
    grouped = replace(TABLE, extra={"kind": kind * 10.0})
    found = TableJudge(grouped, within="kind").judge(scores)["all"]
    assert found == judge(scores, TABLE.targets, counters.score("parameters", TABLE), kind)
    assert found.n_within == len(TABLE)
    with pytest.raises(UnknownNameError, match="unknown grouping 'kinds'; did you mean 'kind'"):
        TableJudge(grouped, within="kinds").judge(scores)


def test_the_test_rows_stay_closed_until_they_are_asked_for(scores: FloatArray) -> None:
    parts = split(TABLE, 0)
    closed = TableJudge(parts.hide_test(TABLE), parts)
    assert set(closed.judge(scores)) == set(closed.rhos(scores)) == {"train", "valid"}
    assert not parts.is_open
    with pytest.raises(KeyError):
        closed.rho(scores, "test")
    assert TableJudge(TABLE, parts, with_test=True).rho(scores, "test") > 0
    assert parts.is_open


def test_hidden_targets_cannot_be_judged(scores: FloatArray) -> None:
    hidden = split(TABLE, 0).hide_test(TABLE)
    with pytest.raises(FitnessError, match="is nan, expected a finite number"):
        TableJudge(hidden).judge(scores)


def test_without_a_split_the_whole_table_is_judged(scores: FloatArray) -> None:
    whole = TableJudge(TABLE)
    assert whole.judge(scores) == {"all": opened().judge(scores)["all"]}
    assert whole.rhos(scores) == whole.parts == {}


def test_only_the_parts_named_are_judged(scores: FloatArray) -> None:
    assert opened().judge(scores, "test") == {"test": opened().judge(scores)["test"]}


def test_what_was_chosen_here_is_out_of_sample_on_test_alone(scores: FloatArray) -> None:
    found = opened().judge_chosen(scores)
    assert [part for part, line in found.items() if not line["in_sample"]] == ["test"]
    assert found["test"]["rho"] == opened().rho(scores, "test")


def test_missing_scores_are_left_out(scores: FloatArray) -> None:
    judged = opened()
    holes = scores.copy()
    lost = judged.parts["train"][:3]
    holes[lost] = np.nan, np.inf, -np.inf
    kept = np.setdiff1d(judged.parts["train"], lost)
    found = judged.judge(holes, "train")["train"]
    assert (found.n, found.flaw) == (len(kept), None)
    expected = spearman(scores[kept], TABLE.targets[kept])
    assert found.rho == judged.rho(holes, "train") == expected
    assert judged.judge(holes, "test") == judged.judge(scores, "test")


@pytest.mark.parametrize("n_finite", [0, 1])
def test_a_part_with_hardly_any_score_is_flawed(scores: FloatArray, n_finite: int) -> None:
    judged = opened()
    few = np.full(len(TABLE), np.nan)
    few[judged.parts["valid"][:n_finite]] = 1.0
    found = judged.judge(few, "valid")["valid"]
    assert (found.n, found.rho, found.flaw) == (len(judged.parts["valid"]), 0, "non-finite")
    assert judged.rho(few, "valid") == 0


def test_counters_are_judged_like_everything_else() -> None:
    judged = opened()
    lines = list(judged.counters())
    assert [line["proxy"] for line in lines] == counters.names()
    for line in lines:
        scores = counters.score(line["proxy"], TABLE)
        assert line["table"] == TABLE.name
        assert line["rho"] == judged.rhos(scores)
        assert line["judged"]["test"] == judged.judge(scores)["test"].to_json()


def test_the_measures_of_many_agree_with_the_judgement(scores: FloatArray) -> None:
    judged = opened()
    rows = judged.rows["all"]
    [found] = judged.measures(rows).measure(scores[np.newaxis]).values.T
    whole = judged.judge(scores, "all")["all"]
    assert found[:2] == pytest.approx([whole.rho, whole.rho_given_params], abs=1e-12)
    assert found[2] == pytest.approx(whole.rho_within or 0.0, abs=1e-12)


def test_the_facts_are_those_of_the_table() -> None:
    known = replace(TABLE, ceiling=0.9)
    facts = TableJudge(known, split(known, 3), with_test=True).facts
    assert (facts["target"], facts["ceiling"], facts["split_seed"]) == ("made up", 0.9, 3)
    assert sum(facts["n"].values()) == len(known)


def test_the_best_column_is_chosen_on_train_and_valid_with_its_sign() -> None:
    parts = split(TABLE, 0)
    noise = np.random.default_rng(1).normal(size=(3, len(TABLE)))
    columns = {
        "weak": TABLE.targets + 4 * noise[0],
        "falling": -TABLE.targets + 0.5 * noise[1],  # the best, of which less is better
        "misleading": TABLE.targets + 2 * noise[2],
    }
    test = parts.open_test()
    columns["misleading"][test] = TABLE.targets[test]  # best on test alone
    judged = TableJudge(TABLE, split(TABLE, 0), with_test=True, columns=columns)
    assert set(judged.oriented_columns()) == {"weak", "-falling", "misleading"}
    name, scores = judged.best_column() or ("", np.zeros(0))
    assert name == "-falling"
    np.testing.assert_array_equal(scores, -columns["falling"])
