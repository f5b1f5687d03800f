"""`lpzero train`: a nano table in a run's directory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lpzero.cli.main import run
from lpzero.runs import layout
from lpzero.runs.run import open_run

pytestmark = pytest.mark.slow


def test_a_small_table_is_trained_and_its_directory_can_be_opened(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "build"
    command = ["train", "nano-gpt2", "--n", "4", "--steps", "1", "--out", str(out), "--quiet"]
    assert run([*command, "--format", "json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["n"] == 4
    assert len(json.loads(Path(printed["table"]).read_text())["rows"]) == 4
    found = open_run(out)
    assert (found.kind, found.remarks) == ("table build", [])
    (out / layout.TABLE).unlink()
    assert "lpzero train nano-gpt2" in open_run(out).remarks[0]
    assert run(command) == 0
    assert str(out / layout.TABLE) in capsys.readouterr().out


def test_an_unknown_space_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", "nano-gtp2"]) == 2
    assert "did you mean 'nano-gpt2'" in capsys.readouterr().err
