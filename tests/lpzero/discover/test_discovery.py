"""Campaign as a Python call: configure, run, look; and numbers that can be trusted."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lpzero.discover.campaign import Progress
from lpzero.discover.discovery import Campaign
from lpzero.discover.report import report
from lpzero.discover.table_fitness import TableFitness
from lpzero.errors import InputError
from lpzero.judgement.correlation import Stability, partial_spearman, spearman
from lpzero.judgement.counters import score
from lpzero.judgement.rivals import Contest, contest_fields
from lpzero.judgement.table import TableJudge
from lpzero.scores.branch_table import branch_table
from lpzero.scores.chains import surviving
from lpzero.scores.formula_rivals import best_count
from lpzero.scores.values import Values
from primitives.errors import Rejected
from primitives.formula import Formula
from primitives.parser import parse
from primitives.statistics import STATISTICS
from spaces.errors import TableError, UnknownNameError
from spaces.tables.table import Table
from tests.formula_keys import key_up_to_sign
from tests.lpzero.fixed_count import FixedCount
from tests.lpzero.small_campaign import discovery, sketches, table

pytestmark = pytest.mark.slow


@cache
def recomputed() -> Values:
    """The values of the small campaigns, which have chains of one, on all rows at once."""
    return Values(branch_table(sketches(), surviving(1)))


@pytest.fixture(scope="module")
def found() -> Campaign:
    return discovery().run()


def test_what_is_found_can_be_looked_at(found: Campaign) -> None:
    best = found.best_
    assert set(best) >= {"formula", "rho", "complexity", "judged"}
    assert set(best["rho"]) == {"train", "valid", "test"}
    assert len(found.history_) == 7
    assert [row["evaluated"] for row in found.history_] == [12 * (i + 1) for i in range(7)]
    keys = [row["key"] for row in found.hall_of_fame_]
    assert len(keys) == len(set(keys)) >= 10
    fitness = [row["fitness"] for row in found.hall_of_fame_]
    assert fitness == sorted(fitness, reverse=True)
    result = found.result_
    assert set(result) >= {"best", "top", "counters", "evaluated", "rejected"}
    assert result["counters"][0]["proxy"] == "parameters"
    assert all(len(line["judged"]["test"]["rho_ci"]) == 2 for line in result["counters"])


def test_the_winner_meets_its_rivals_on_the_test_rows(found: Campaign) -> None:
    made = table()
    judged = TableJudge(made, found.objective.tables_fitness[0].parts, with_test=True)
    winner = recomputed().score(parse(found.best_["formula"]))
    assert not isinstance(winner, Rejected)
    fitness = found.objective.tables_fitness[0]
    contest = Contest(judged, winner, best_count(made, fitness.rows, fitness.train_valid_rows))
    assert found.result_.items() >= contest_fields([contest]).items()
    count = FixedCount("sum(params)", score("parameters", made))
    measured = []

    def stability(formula: Formula, on: Table) -> Stability:
        measured.append((str(formula), on.name))
        return Stability(2, 0.9, 0.8)

    counts = {made.name: count}
    result = report([made], found.objective, found.outcome_, counts, stability)
    expected = Contest(judged, winner, count, Stability(2, 0.9, 0.8))
    assert result.items() >= contest_fields([expected]).items()
    assert measured == [(found.best_["formula"], made.name)]
    assert result["best"] == found.result_["best"]


def test_the_numbers_printed_are_those_recomputed(found: Campaign) -> None:
    evaluator = recomputed()
    parts = found.objective.tables_fitness[0].parts
    rows = {"train": parts.train, "valid": parts.valid, "test": parts.open_test()}
    assert found.result_["top"]
    for line in found.result_["top"]:
        scores = evaluator.score(parse(line["formula"]))
        assert not isinstance(scores, Rejected)
        for part, where in rows.items():
            assert line["rho"][part] == pytest.approx(
                spearman(scores[where], table().targets[where])
            )
        assert line["rho"]["train"] == pytest.approx(line["fitness"][0])
        assert line["rho"]["train"] >= 0
        test = line["judged"]["made-up"]["test"]
        assert test["rho"] == line["rho"]["test"]
        assert test["rho_ci"][0] <= test["rho"] <= test["rho_ci"][1]


def test_the_winner_is_the_front_member_best_on_valid(found: Campaign) -> None:
    front = found.outcome_.hall.front
    valid = {key_up_to_sign(entry.formula): found.objective.valid(entry) for entry in front}
    assert valid[key_up_to_sign(parse(found.best_["formula"]))] == max(valid.values())
    by_train = discovery(choose="train").run()
    assert by_train.best_["fitness"][0] == by_train.hall_of_fame_[0]["fitness"]


def test_partial_and_within_are_what_is_selected() -> None:
    found = discovery(objectives=("partial",), generations=3, choose="train").run()
    rows = found.objective.tables_fitness[0].parts.train
    scores = recomputed().score(parse(found.best_["formula"]))
    assert not isinstance(scores, Rejected)
    expected = partial_spearman(
        scores[rows], table().targets[rows], score("parameters", table())[rows]
    )
    assert found.best_["fitness"] == [pytest.approx(expected)]
    both = discovery(objectives=("rho", "partial"), generations=3).search()
    assert {len(entry.fitness) for entry in both.outcome_.hall.entries} == {2}


def test_an_objective_without_groups_is_refused() -> None:
    with pytest.raises(InputError, match="within cannot be measured"):
        discovery(objectives=("within",))


def test_several_tables_count_by_the_worst_or_make_a_front() -> None:
    tables = [table(), table(name="another")]
    found = discovery(table=tables, generations=2, across="min").run()
    assert found.outcome_.hall.entries
    for entry in found.outcome_.hall.entries:
        assert entry.fitness == (min(measures[0] for measures in entry.measures),)
    assert set(found.best_["rho_by_table"]) == {"made-up", "another"}
    assert set(found.best_["judged"]) == {"made-up", "another"}
    apart = discovery(table=tables, generations=2, across="pareto").search()
    assert {len(entry.fitness) for entry in apart.outcome_.hall.entries} == {2}


@pytest.mark.parametrize("terms", [1, 2])
def test_several_tables_count_by_the_distance_to_their_own_best(terms: int) -> None:
    tables = [table(), table(name="another")]
    found = discovery(table=tables, generations=1, terms=terms).run()
    best = [fitness.products[0].value for fitness in found.objective.tables_fitness]
    for entry in found.outcome_.hall.entries:
        regrets = [measures.rho - own for measures, own in zip(entry.measures, best, strict=True)]
        assert entry.fitness == (pytest.approx(min(regrets)),)
    beam = [c for c in found.outcome_.hall.entries if c.operator == "beam"]
    assert bool(beam) == (terms > 1)


def test_statistics_that_are_not_allowed_do_not_appear() -> None:
    found = discovery(statistics=("A", "H", "W", "S"), generations=2).search()
    names = set(STATISTICS) - {"A", "H", "W", "S"}
    assert found.hall_of_fame_
    assert not any(names & set(row["formula"]) for row in found.hall_of_fame_)


def test_deep_trees_and_long_chains_are_judged() -> None:
    found = discovery(unaries=3, depth=2, same_statistic=True, generations=2).run()
    assert found.result_["evaluated"] == 36


def test_a_sample_of_architectures_is_drawn_from_the_training_rows() -> None:
    fitness = discovery(archs=10).objective.tables_fitness[0]
    assert len(fitness.rows) == 10
    assert set(fitness.rows) <= set(fitness.parts.train)
    # Search seeds share them, so that their fitness can be compared; splits do not.
    assert np.array_equal(
        fitness.rows, discovery(archs=10, seed=4).objective.tables_fitness[0].rows
    )
    other = discovery(archs=10, split_seed=1).objective.tables_fitness[0]
    assert not np.array_equal(fitness.rows, other.rows)


def test_callbacks_are_called_and_can_stop() -> None:
    told: list[Progress] = []

    def watch(progress: Progress) -> bool:
        told.append(progress)
        return progress.generation == 2

    found = discovery(callbacks=[watch, lambda progress: None]).search()
    assert [progress.generation for progress in told] == [0, 1, 2]
    assert found.outcome_.stopped == "asked to stop"
    assert told[-1].evaluated == 36
    assert -1 <= told[-1].valid <= 1


def test_the_valid_rows_are_scored_only_for_progress_that_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scored: list[object] = []
    measure = TableFitness.on_valid

    def noted(self: TableFitness, formula: Any, name: str) -> float:
        scored.append(formula)
        return measure(self, formula, name)

    monkeypatch.setattr(TableFitness, "on_valid", noted)
    told: list[Progress] = []
    found = discovery(callbacks=[told.append]).search()
    assert scored == []
    assert len(told) > 1
    for progress in told:
        assert progress.valid == found.objective.valid(progress.best)
    assert 0 < len(scored) == len({progress.best.id for progress in told})


def test_a_time_limit_stops_after_a_generation(tmp_path: Path) -> None:
    found = discovery(tmp_path / "c", generations=10_000, time_limit=1e-9).run()
    assert found.outcome_.stopped == "the time limit"
    assert len(found.history_) == 1


def test_a_campaign_can_be_resumed_without_naming_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    discovery(tmp_path / "c", generations=2).search()
    monkeypatch.setattr("lpzero.discover.discovery.load", lambda *_: table())
    again = Campaign(out=tmp_path / "c", resume=True, generations=3, sketches=[sketches()]).run()
    assert len(again.history_) == 4
    assert again.settings.population == 12


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Campaign("nano-gpt3"), UnknownNameError, "did you mean"),
        (lambda: Campaign([]), InputError, "one table or several"),
        (lambda: Campaign(["nano-gpt2", "nano-gpt2"]), InputError, "several different"),
        (lambda: Campaign(), InputError, "no table is given"),
        (lambda: discovery(time_limit=0), InputError, "time_limit is 0"),
        (lambda: discovery(resume=True), InputError, "nothing to resume"),
        (lambda: discovery(generation=3), InputError, "did you mean 'generations'"),
        (lambda: discovery(jobs=0), InputError, "jobs is 0"),
        (lambda: discovery(table=table(8)), TableError, "a split needs at least 10"),
        (lambda: discovery(table=table(12)), InputError, "6 of them for training"),
        (
            lambda: discovery(statistics=("S",), unaries=0).search(),
            InputError,
            "no formula of this space survives",
        ),
    ],
)
def test_what_cannot_be_is_refused(
    make: Callable[[], Campaign], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make()


def test_garbage_is_looked_for_as_often_as_before_when_a_campaign_has_ended() -> None:
    usual, during = gc.get_threshold(), []

    def stop(progress: Progress) -> bool:
        during.append(gc.get_threshold()[0])
        raise KeyboardInterrupt

    with suppress(KeyboardInterrupt):
        discovery(callbacks=[stop]).search()
    assert during[0] > usual[0]
    assert gc.get_threshold() == usual
