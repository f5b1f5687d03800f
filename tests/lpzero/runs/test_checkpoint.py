"""A checkpoint is resumed from only if it belongs to this version, this run and this journal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lpzero.runs import layout
from lpzero.runs.config import SCHEMA, RunConfig
from lpzero.runs.directory import RunDirectory
from tests.lpzero.sealed_runs import content, rewrite


def entered(folder: Path) -> RunDirectory:
    return RunDirectory(folder, RunConfig("campaign", {"seed": 1}), True, lambda *_: True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run with a checkpoint after the second of three lines of its journal."""
    with entered(tmp_path / "run") as run:
        run.journal.append([{"n": 0}, {"n": 1}])
        run.write_checkpoint({"state": "here"})
        run.journal.append([{"n": 2}])
    return tmp_path / "run"


def checkpoint(folder: Path) -> dict[str, Any] | None:
    with entered(folder) as run:
        return run.read_checkpoint()


def test_a_checkpoint_is_read_back(folder: Path) -> None:
    found = checkpoint(folder)
    assert found is not None
    assert (found["state"], found["journal_lines"], found["schema"]) == ("here", 2, SCHEMA)


@pytest.mark.parametrize(
    "change",
    [
        {"schema": SCHEMA + 1},
        {"schema": None},
        {"journal_lines": None},
        {"journal_lines": "2"},
        {"journal_lines": 1},
        {"journal_lines": 4},
        {"journal_seal": "0" * 32},
    ],
)
def test_a_checkpoint_of_another_version_or_journal_is_ignored(
    folder: Path, change: dict[str, Any]
) -> None:
    rewrite(folder, layout.CHECKPOINT, {**content(folder, layout.CHECKPOINT), **change})
    assert checkpoint(folder) is None


def test_a_checkpoint_that_was_changed_is_ignored_with_a_remark(folder: Path) -> None:
    path = folder / layout.CHECKPOINT
    path.write_text(path.read_text().replace("here", "there"))
    with entered(folder) as run:
        assert run.read_checkpoint() is None
        assert any("is ignored" in remark for remark in run.remarks)
