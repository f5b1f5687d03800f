"""Building a nano table: resumable, the same for any number of jobs, refusing foreign journals."""

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

import spaces
from spaces.batches import pydoc_digest
from spaces.errors import TableError
from spaces.tables import nano
from spaces.training.recipes import PLANS
from spaces.training.table_builder import build, sample_architectures, train_one
from spaces.training.trainer import Recipe

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
        for run in row["runs"]:
            del run["seconds"]
    return table


def silent(done: int, total: int) -> None:
    pass


BUILD_IN_ANOTHER_PROCESS = """
import sys
from pathlib import Path
from dataclasses import replace
from spaces.training.recipes import PLANS
from spaces.training.table_builder import build
from spaces.training.trainer import Recipe

plan = replace(
    PLANS["nano-gpt2"], recipe=Recipe(steps=2, learning_rate=1e-3, windows=2),
    n_archs=4, n_repeated=3, n_repeated_seeds=2,
)
build(plan, Path(sys.argv[1]), 1, lambda done, total: None)
"""


def n_lines(path: Path) -> int:
    return path.read_text().count("\n") if path.exists() else 0


@pytest.mark.slow
def test_kill_9_and_the_number_of_jobs_do_not_change_the_table(tmp_path: Path) -> None:
    straight = build(PLAN, tmp_path / "straight", 1, silent)
    folder = tmp_path / "killed"
    journal = folder / "nano-gpt2.jsonl"
    process = subprocess.Popen([sys.executable, "-c", BUILD_IN_ANOTHER_PROCESS, str(folder)])
    deadline = time.monotonic() + 120
    while n_lines(journal) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    process.kill()
    process.wait()
    n_saved = n_lines(journal)
    assert n_saved >= 3
    with journal.open("a") as lines:
        lines.write('{"index": 3, "targ')  # a line torn by the kill
    resumed = build(PLAN, folder, 2, silent)
    assert without_seconds(resumed) == without_seconds(straight)
    assert n_lines(journal) == 1 + 4 + 3


@pytest.mark.slow
def test_a_journal_of_another_plan_is_refused(tmp_path: Path) -> None:
    build(PLAN, tmp_path, 1, silent)
    with pytest.raises(TableError, match="another plan"):
        build(replace(PLAN, sampling_seed=1), tmp_path, 1, silent)


def test_a_longer_plan_begins_with_the_same_architectures() -> None:
    assert sample_architectures(replace(PLAN, n_archs=9))[:4] == sample_architectures(PLAN)


@pytest.mark.slow
def test_an_unknown_table_is_one_line_and_exit_code_2() -> None:
    command = [sys.executable, "-m", "spaces.training", "build", "nano-gtp2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "did you mean 'nano-gpt2'" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nano-gpt2", "nano-flexibert"])
def test_recorded_targets_come_out_again(name: str) -> None:
    """The two quickest architectures, trained again from their recorded seeds."""
    table = json.loads((nano.DATA / f"{name}.json").read_text())
    if table["provenance"]["text_sha256"] != pydoc_digest():
        pytest.skip("this Python carries another text than the table was trained on")
    plan, rows = PLANS[name], table["rows"]
    space = spaces.get(name)
    quickest = sorted(range(len(rows)), key=lambda i: rows[i]["runs"][0]["seconds"])[:2]
    for index in quickest:
        assert space.to_json(sample_architectures(plan)[index]) == rows[index]["arch"]
        run = rows[index]["runs"][0]
        again = train_one(plan, index, run["seed"])
        assert again["target"] == pytest.approx(run["target"], abs=1e-3)


@pytest.mark.parametrize("name", ["nano-gpt2", "nano-flexibert"])
def test_shipped_tables_carry_signal(name: str) -> None:
    table = json.loads((nano.DATA / f"{name}.json").read_text())
    assert len(table["rows"]) >= 96
    assert sum(len(row["runs"]) >= 3 for row in table["rows"]) >= 12
    assert table["noise"]["rho_between_targets"] >= 0.9
    assert table["provenance"]["plan"]["recipe"]["steps"] == table["rows"][0]["runs"][0]["steps"]
