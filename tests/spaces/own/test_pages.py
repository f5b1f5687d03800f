"""The code of "Your own space and table" and of "As a plug-in" runs as it is printed."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lpzero.cli.main import run as lpzero
from tests.faults.attempt import BUSY, attempt

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]


def blocks(page: str, kind: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    found = re.findall(r"^```(\w*)\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    return [block for named, block in found if named == kind]


def run(folder: Path, *words: str, act: Callable[[list[str]], int] = lpzero) -> str:
    """What the command prints in a process of its own, because files change the language."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = attempt(words, folder / "said", act=act, limit=BUSY)
    assert done.code == 0, done.err
    return done.out


def test_the_page_on_spaces_and_tables_runs(tmp_path: Path) -> None:
    space, follows, reads = blocks("your-own-space.md", "python")
    (project,) = blocks("your-own-space.md", "yaml")
    csv = next(block for block in blocks("your-own-space.md", "") if "accuracy\n1,16" in block)
    (tmp_path / "my_space.py").write_text(space)
    (tmp_path / "results.csv").write_text(csv)
    (tmp_path / "lpzero.yaml").write_text(project)
    check = f"from my_space import SPACE\n{follows}\n{reads}\nassert len(table) == 2\n"

    def read(_: list[str]) -> int:
        sys.path.append(".")
        exec(check, {"__name__": "__main__"})  # noqa: S102
        return 0

    run(tmp_path, act=read)
    assert "my-table" in run(tmp_path, "tables")
    _, counted = run(tmp_path, "counters", "my-table").split("my-table: accuracy, space my-space")
    assert counted


def test_the_page_on_plug_ins_runs(tmp_path: Path) -> None:
    (operation,) = blocks("plug-ins.md", "python")
    (tmp_path / "my_ops.py").write_text(operation)
    words = ("export", "sum(softsign(W))", "--plugin", "my_ops.py", "--to")
    assert "op_softsign" in run(tmp_path, *words, "python")
    assert "Abs" in run(tmp_path, *words, "sympy")
