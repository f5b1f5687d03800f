"""Building a nano table: resumable, the same for any number of jobs, refusing foreign journals."""

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

import spaces
from lpzero.cli.main import run
from lpzero.errors import RunError
from lpzero.parallel import Workers
from lpzero.runs import layout
from lpzero.runs.directory import locked
from lpzero.training.table_build import build_table
from spaces.minibatch import pydoc_digest
from spaces.tables import nano
from spaces.training.recipes import PLANS
from spaces.training.table_rows import sample_architectures, train_one
from spaces.training.trainer import Recipe
from tests import forks

PLAN = replace(
    PLANS["nano-gpt2"],
    recipe=Recipe(steps=2, learning_rate=1e-3, windows=2),
    n_archs=4,
    n_repeated=3,
    n_repeated_seeds=2,
)


def without_seconds(path: Path) -> dict:
    table = json.loads(path.read_text())
    for row in table["rows"]:
        for trained in row["runs"]:
            del trained["seconds"]
    return table


def curves(journal: Path) -> dict[tuple[int, int], list]:
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    return {(line["index"], line["seed"]): line["curve"] for line in lines}


def n_lines(path: Path) -> int:
    return path.read_text().count("\n") if path.exists() else 0


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The (index, seed) that were trained; no network is."""
    found = []

    def train(plan: object, index: int, seed: int) -> dict:
        found.append((index, seed))
        target = index + seed / 10
        return {"index": index, "seed": seed, "target": target, "steps": 2, "seconds": 0.5}

    monkeypatch.setattr("lpzero.training.table_build.train_one", train)
    return found


@pytest.mark.slow
def test_a_changed_target_is_trained_again(
    tmp_path: Path, trained: list[tuple[int, int]], caplog: pytest.LogCaptureFixture
) -> None:
    whole = build_table(PLAN, tmp_path).read_bytes()
    journal = tmp_path / layout.JOURNAL
    journal.write_text(journal.read_text().replace('"target":1.1', '"target":1.9'))
    trained.clear()
    assert build_table(PLAN, tmp_path).read_bytes() == whole
    assert trained[0] == (1, 1)
    assert f"{journal}: line 4 was changed" in caplog.text


@pytest.mark.slow
def test_kill_9_and_the_number_of_jobs_do_not_change_the_table(tmp_path: Path) -> None:
    straight = build_table(PLAN, tmp_path / "straight")
    folder = tmp_path / "killed"
    journal = folder / layout.JOURNAL
    process = forks.start(build_table, PLAN, folder)
    deadline = time.monotonic() + 600
    while n_lines(journal) < 3 and time.monotonic() < deadline:
        time.sleep(0.005)
    process.kill()
    process.join()
    n_saved = n_lines(journal)
    assert n_saved >= 3
    with journal.open("a") as lines:
        lines.write('{"index": 3, "targ')  # a line torn by the kill
    resumed = build_table(PLAN, folder, Workers(2))
    assert without_seconds(resumed) == without_seconds(straight)
    assert n_lines(journal) == 4 + 3
    assert curves(journal) == curves(straight.parent / layout.JOURNAL)
    assert all([step for step, _ in curve] == [1, 2] for curve in curves(journal).values())


@pytest.mark.usefixtures("trained")
def test_a_journal_of_another_plan_is_refused(tmp_path: Path) -> None:
    build_table(PLAN, tmp_path)
    with pytest.raises(RunError, match="started with sampling_seed 20, not 1"):
        build_table(replace(PLAN, sampling_seed=1), tmp_path)
    with locked(tmp_path), pytest.raises(RunError, match="in use"):
        build_table(PLAN, tmp_path)


def test_a_target_that_is_not_finite_is_trained_again(
    tmp_path: Path, trained: list[tuple[int, int]]
) -> None:
    build_table(PLAN, tmp_path)
    journal = tmp_path / layout.JOURNAL
    whole = journal.read_text()
    last = json.loads(whole.splitlines()[-1]) | {"target": float("nan")}
    journal.write_text("\n".join([*whole.splitlines()[:-1], json.dumps(last)]) + "\n")
    trained.clear()
    build_table(PLAN, tmp_path)
    assert trained == [(last["index"], last["seed"])]
    assert [json.loads(line)["target"] for line in journal.read_text().splitlines()] == [
        json.loads(line)["target"] for line in whole.splitlines()
    ]


@pytest.mark.slow
def test_a_diverging_architecture_is_a_failure_with_a_reason_and_has_no_row(tmp_path: Path) -> None:
    plan = replace(
        PLANS["nano-rnn"],
        recipe=Recipe(steps=2, learning_rate=1e-3, windows=2),
        n_archs=4,
        n_repeated=3,
        n_repeated_seeds=2,
    )
    table = json.loads(build_table(plan, tmp_path).read_text())
    cells = [spaces.get("nano-rnn").to_json(arch) for arch in sample_architectures(plan)]
    assert [row["arch"] for row in table["rows"]] == cells[1:]
    assert [failure["seed"] for failure in table["failures"]] == [0, 1]
    for failure in table["failures"]:
        assert failure["arch"] == cells[0]
        assert "not finite after 0 steps" in failure["failure"]
    assert table["noise"]["n"] == 2
    journal = (tmp_path / layout.JOURNAL).read_text()
    build_table(plan, tmp_path)  # failures are not trained again
    assert (tmp_path / layout.JOURNAL).read_text() == journal


def test_a_longer_plan_begins_with_the_same_architectures() -> None:
    assert sample_architectures(replace(PLAN, n_archs=9))[:4] == sample_architectures(PLAN)


def test_an_unknown_table_is_one_line_and_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", "nano-gtp2"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "did you mean 'nano-gpt2'" in error


@pytest.mark.slow
@pytest.mark.parametrize("name", list(PLANS))
def test_recorded_targets_come_out_again(name: str) -> None:
    """The quickest architecture, trained again from its recorded seed."""
    table = json.loads((nano.DATA / f"{name}.json").read_text())
    if table["provenance"]["text_sha256"] != pydoc_digest():
        pytest.skip("this Python carries another text than the table was trained on")
    plan, rows = PLANS[name], table["rows"]
    space = spaces.get(name)
    cells = [space.to_json(arch) for arch in sample_architectures(plan)]
    row = min(rows, key=lambda row: row["runs"][0]["seconds"])
    recorded = row["runs"][0]
    again = train_one(plan, cells.index(row["arch"]), recorded["seed"])
    assert again["target"] == pytest.approx(recorded["target"], abs=1e-3)


@pytest.mark.parametrize("name", list(PLANS))
def test_shipped_tables_carry_signal(name: str) -> None:
    table = json.loads((nano.DATA / f"{name}.json").read_text())
    assert len(table["rows"]) >= 96
    assert sum(len(row["runs"]) >= 3 for row in table["rows"]) >= 12
    assert table["noise"]["rho_between_targets"] >= 0.9
    assert table["provenance"]["plan"]["recipe"]["steps"] == table["rows"][0]["runs"][0]["steps"]
