"""The exhaustive run: every measure right, the same however it ran, test rows kept closed."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spaces
from lpzero.errors import InputError, RunError
from lpzero.exhaust import ExhaustSettings, Query, Results, choose, exhaust, report, shards
from lpzero.exhaust.record import read
from lpzero.exhaust.results import formula_at
from lpzero.exhaust.shards import ShardFiles
from lpzero.judgement import counters
from lpzero.judgement.correlation import partial_spearman, spearman, within_spearman
from lpzero.judgement.measures import MEASURES
from lpzero.judgement.rivals import Contest, contest_fields
from lpzero.judgement.table import TableJudge
from lpzero.parallel import Workers
from lpzero.report.figures import pairs
from lpzero.runs.config import read_config
from lpzero.runs.directory import locked
from lpzero.scores.branch_table import branch_table
from lpzero.scores.chains import surviving
from lpzero.scores.values import Values
from lpzero.sketches.sketch import Sketch
from lpzero.version import VERSION
from primitives.errors import Rejected
from primitives.expressions import Leaf, walk
from primitives.parser import parse
from primitives.reductions import PAPER_REDUCTIONS
from primitives.space_size import measure
from spaces.tables.splits import split
from spaces.tables.table import Table, make_table
from tests.lpzero import random_sketches
from tests.lpzero.fixed_count import FixedCount

N = 24


@pytest.fixture(scope="module")
def table() -> Table:
    space = spaces.get("nano-flexibert")
    rng = random.Random(0)
    archs = [space.sample(rng) for _ in range(N)]
    rows = [(str(i), arch, space.depth(arch) + rng.random()) for i, arch in enumerate(archs)]
    return make_table("made-up", space, rows, "made up", "none")


@pytest.fixture(scope="module")
def sketches(table: Table) -> list[Sketch]:
    return [
        random_sketches.sketch(i, table.space.depth(arch)) for i, arch in enumerate(table.archs)
    ]


@pytest.fixture(scope="module")
def done(
    table: Table, sketches: list[Sketch], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Results, Any]:
    """A finished run with every pair of statistics, by one process."""
    folder = tmp_path_factory.mktemp("run")
    parts = split(table, 0)
    return exhaust(parts.hide_test(table), sketches, parts, folder, ExhaustSettings(1, True))


def test_a_folder_that_another_run_has_locked_is_refused(
    table: Table, sketches: list[Sketch], tmp_path: Path
) -> None:
    parts = split(table, 0)
    with locked(tmp_path), pytest.raises(RunError, match="in use"):
        exhaust(parts.hide_test(table), sketches, parts, tmp_path, ExhaustSettings(1))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.slow
def test_every_measure_is_that_of_the_formula(
    table: Table, sketches: list[Sketch], done: tuple[Results, Any]
) -> None:
    results, branches = done
    evaluator = Values(branches)
    rows = split(table, 0).train
    targets = table.targets[rows]
    parameters = counters.score("parameters", table)[rows]
    groups = table.groups("depth-width")[rows]
    rng = random.Random(1)
    n_checked = 0
    for number, block in enumerate(results.shards):
        family = results.families[block.family]
        found = shards.read(results.files, number)
        assert found is not None
        there = np.argwhere(shards.members(family, block))
        for left, right in rng.sample(there.tolist(), min(6, len(there))):
            for index, reduction in enumerate(PAPER_REDUCTIONS):
                formula = formula_at(family, block.start + left, right, reduction)
                scores = evaluator.score(formula)
                assert isinstance(scores, np.ndarray)
                within = within_spearman(scores[rows], targets, groups)
                measures = found.values[:, index, left, right]
                assert measures[0] == spearman(scores[rows], targets), str(formula)
                given = partial_spearman(scores[rows], targets, parameters)
                assert measures[1] == pytest.approx(given, abs=1e-12)
                assert measures[2] == pytest.approx(within.rho if within else 0.0, abs=1e-12)
                n_checked += 1
    assert n_checked > 500


@pytest.mark.slow
def test_the_families_are_all_there(done: tuple[Results, Any]) -> None:
    results, _ = done
    evaluated, _, non_finite = results.counts
    assert evaluated == 2 * sum(map(len, results.families)) == 2 * measure(1, True).distinct
    assert non_finite == 0


@pytest.mark.slow
def test_jobs_memory_and_interruptions_change_no_byte(
    table: Table, sketches: list[Sketch], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = split(table, 0)
    exhaust(table, sketches, parts, tmp_path / "one", ExhaustSettings())
    expected = contents(tmp_path / "one")
    exhaust(table, sketches, parts, tmp_path / "two", ExhaustSettings(workers=Workers(2)))
    assert contents(tmp_path / "two") == expected
    exhaust(table, sketches, parts, tmp_path / "small", ExhaustSettings(memory=40 << 20))
    assert contents(tmp_path / "small") == expected

    def stop_at_twenty(self: Any, task: Any) -> None:
        if task[0] == 20:
            raise KeyboardInterrupt
        shards.write(self.files, task[0], self.measure(task[1]))

    with monkeypatch.context() as patch:
        patch.setattr(shards.ShardTask, "__call__", stop_at_twenty)
        with pytest.raises(KeyboardInterrupt):
            exhaust(table, sketches, parts, tmp_path / "stopped", ExhaustSettings())
    assert len(contents(tmp_path / "stopped")) < len(expected)
    torn = ShardFiles(tmp_path / "stopped", "").path(3)
    torn.write_bytes(torn.read_bytes()[:-40])
    exhaust(table, sketches, parts, tmp_path / "stopped", ExhaustSettings())
    assert contents(tmp_path / "stopped") == expected


@pytest.mark.slow
def test_a_finished_run_computes_nothing(
    table: Table, sketches: list[Sketch], done: tuple[Results, Any], monkeypatch: Any
) -> None:
    monkeypatch.delattr(shards.ShardTask, "measure")
    exhaust(table, sketches, split(table, 0), done[0].files.folder, ExhaustSettings(1, True))


def test_another_run_is_refused(
    table: Table, sketches: list[Sketch], done: tuple[Results, Any]
) -> None:
    folder = done[0].files.folder
    with pytest.raises(InputError, match=r"started with split_seed 0, not 1"):
        exhaust(table, sketches, split(table, 1), folder, ExhaustSettings(1, True))
    with pytest.raises(InputError, match="same_statistic"):
        exhaust(table, sketches, split(table, 0), folder, ExhaustSettings(1))


def test_a_run_of_another_engine_is_refused_by_its_version(
    table: Table, sketches: list[Sketch], done: tuple[Results, Any], monkeypatch: Any
) -> None:
    monkeypatch.setattr("lpzero.exhaust.run.VERSION", "9.9")
    with pytest.raises(InputError, match=rf"was started by lpzero {re.escape(VERSION)}, which"):
        exhaust(table, sketches, split(table, 0), done[0].files.folder, ExhaustSettings(1, True))


@pytest.mark.slow
def test_too_little_memory_is_said_before_anything_is_measured(
    table: Table, sketches: list[Sketch], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"needs at least .* GB: give --memory more"):
        exhaust(table, sketches, split(table, 0), tmp_path, ExhaustSettings(memory=1000))


@pytest.mark.slow
@pytest.mark.parametrize("by", MEASURES)
def test_the_best_are_the_best_of_all(done: tuple[Results, Any], by: str) -> None:
    results, _ = done
    everything = np.concatenate(
        [
            np.abs(found.values[MEASURES.index(by)]).reshape(-1)
            for found in (shards.read(results.files, i) for i in range(len(results.shards)))
            if found is not None
        ]
    )
    best = results.best(Query(by, top=25))
    expected = np.sort(everything[np.isfinite(everything)])[::-1][:25]
    assert [entry.value for entry in best[:25]] == expected.tolist()
    assert all(entry.value >= 0 for entry in best)
    assert all(getattr(entry.measures, by) == entry.value for entry in best)


def test_queries_pick_what_they_say(done: tuple[Results, Any]) -> None:
    results, _ = done

    def statistics(entry: Any) -> set[str]:
        nodes = walk(entry.formula.term.expression)
        return {node.statistic for node in nodes if isinstance(node, Leaf)}

    forward = results.best(Query(without="GJ", top=5))
    assert all(statistics(entry) <= set("AHWS") for entry in forward)
    assert all("S" in statistics(entry) for entry in results.best(Query(using="S", top=5)))
    one_sided = results.best(Query(operation="one-sided", top=5))
    assert all(len(statistics(entry)) == 1 for entry in one_sided)
    means = results.best(Query(reduction="mean", top=5))
    assert all(entry.formula.term.reduction == "mean" for entry in means)
    with pytest.raises(InputError, match="unknown measure 'luck'"):
        Query("luck")


def test_choosing_never_opens_the_test_rows(
    table: Table, sketches: list[Sketch], done: tuple[Results, Any]
) -> None:
    results, branches = done
    parts = split(table, 0)
    evaluator = Values(branches)
    chosen = choose(parts.hide_test(table), parts, results, evaluator)
    assert not parts.is_open
    values = [entry.value for entry, _ in chosen]
    assert values == sorted(values, reverse=True)
    result = report(table, parts, done, ExhaustSettings(1, True))
    assert parts.is_open
    assert [line["formula"] for line in result["top"]] == [str(e.formula) for e, _ in chosen]


def test_the_heat_map_holds_the_best_of_every_operation_and_pair(
    done: tuple[Results, Any],
) -> None:
    results, config = done[0], read_config(done[0].files.folder)
    assert config is not None
    found = pairs.best(read(config).pairs())
    assert len(found.operations) * len(found.statistics) == 5 * 6
    for operation, plane in zip(found.operations, found.rho, strict=True):
        for index, using in enumerate(found.statistics):
            best = results.best(Query(operation=operation, using=using, top=1))[0]
            assert np.nanmax(plane[index]) == abs(best.value)


@pytest.mark.slow
def test_the_report_says_all_a_result_must_show(
    table: Table, sketches: list[Sketch], done: tuple[Results, Any]
) -> None:
    result = report(table, split(table, 0), done, ExhaustSettings(1, True))
    best = result["best"]
    judged_parts = best["judged"]["made-up"]
    assert set(best["rho"]) == {"train", "valid", "test"}
    assert set(judged_parts) == {"train", "valid", "test", "all"}
    assert not judged_parts["test"]["in_sample"]
    assert judged_parts["all"]["in_sample"]
    assert best["rho"]["train"] == best["train"]["rho"] == judged_parts["train"]["rho"]
    for judged in judged_parts.values():
        assert {"rho_ci", "tau", "rho_given_params", "rho_within", "top_precision"} <= set(judged)
    assert [line["proxy"] for line in result["counters"]] == counters.names()
    pruned = {k: v for k, v in result["rejected"].items() if k not in ("constant-score",)}
    assert result["evaluated"] + sum(pruned.values()) == 2 * measure(1, True).before
    assert len(result["top"]) == 10
    count = FixedCount("sum(params)", counters.score("parameters", table))
    parts = split(table, 0)
    beside = report(table, parts, done, ExhaustSettings(1, True), None, count)
    winner = Values(branch_table(sketches, surviving(1))).score(parse(best["formula"]))
    assert not isinstance(winner, Rejected)
    judged_table = TableJudge(table, parts, with_test=True)
    assert result.items() >= contest_fields([Contest(judged_table, winner)]).items()
    assert beside.items() >= contest_fields([Contest(judged_table, winner, count)]).items()
    assert beside["best"] == best
