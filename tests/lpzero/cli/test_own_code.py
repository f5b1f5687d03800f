"""Runs on a user's own space are continued with the code given again, and refused without it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lpzero import plugins
from lpzero.cli.main import run
from lpzero.report.page import content_of, document
from lpzero.runs.run import open_run
from spaces import user_modules

SPACE = """
from dataclasses import replace
import spaces
SPACE = replace(spaces.NANO_GPT2, name="renamed")
"""
OPTIONS = ("--loop", "random", "--proxy", "depth", "--samples", "4", "--evaluator", "proxy")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "my_space.py").write_text(SPACE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    forget()


def forget() -> None:
    """What a process that has just started knows."""
    for known in (user_modules._LOADED, user_modules._IMPORTED, user_modules._SPACES):
        known.clear()
    plugins._GIVEN.clear()
    sys.modules.pop("my_space", None)


def search(*words: str) -> int:
    forget()
    return run(["search", *words, "--quiet", "--out", "found"])


def test_a_search_on_ones_own_space_continues_with_the_code_given_again(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert search("my_space.py:SPACE", *OPTIONS) == 0
    assert search("--resume") == 2
    printed = capsys.readouterr().err
    assert "my_space.py:SPACE names Python code" in printed
    assert "give --plugin my_space.py, or name it as the space of a table in lpzero.yaml" in printed
    assert printed.count("\n") == 1
    assert search("my_space.py:SPACE", *OPTIONS, "--resume") == 0
    assert search("my_space.py:SPACE", "--resume") == 0
    assert search("--resume", "--plugin", "my_space.py") == 0
    assert search("--resume", "--plugin", "my_space") == 0
    entry = "{file: results.csv, space: 'my_space.py:SPACE', target: accuracy}"
    Path("lpzero.yaml").write_text(f"tables:\n  mine: {entry}\n")
    assert search("--resume") == 0


def test_a_search_that_its_time_limit_stops_prints_a_command_that_continues(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forget()
    words = ["search", "my_space.py:SPACE", "--loop", "etas", *OPTIONS[2:], "--mutants", "2"]
    words += ["--iterations", "3", "--out", "found", "--time-limit", "1e-9", "--quiet"]
    assert run(words) == 0
    printed = capsys.readouterr().err
    assert "continue with: lpzero search my_space.py:SPACE --out found --resume" in printed


def test_a_page_says_that_its_command_runs_code(folder: Path) -> None:
    assert search("my_space.py:SPACE", *OPTIONS, "--plugin", "my_space.py") == 0
    forget()
    page = document(content_of(open_run("found")), {})
    assert "--plugin my_space.py" in page
    assert (
        "The first command runs Python code that is not part of lpzero: my_space.py,"
        " my_space.py:SPACE. Run it only if that code is yours, or if you have read it." in page
    )
    assert "my_space" not in sys.modules
