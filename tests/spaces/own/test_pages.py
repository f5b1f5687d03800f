"""The code of "Your own space and table" and of "As a plug-in" runs as it is printed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]


def blocks(page: str, kind: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    found = re.findall(r"^```(\w*)\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    return [block for named, block in found if named == kind]


def run(folder: Path, *words: str) -> str:
    environment = {
        "PYTHONPATH": str(ROOT),
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder),
        "LPZERO_CACHE": str(folder / "cache"),
    }
    done = subprocess.run(
        [sys.executable, "-P", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_page_on_spaces_and_tables_runs(tmp_path: Path) -> None:
    space, follows, reads = blocks("your-own-space.md", "python")
    (project,) = blocks("your-own-space.md", "yaml")
    csv = next(block for block in blocks("your-own-space.md", "") if "accuracy\n1,16" in block)
    (tmp_path / "my_space.py").write_text(space)
    (tmp_path / "results.csv").write_text(csv)
    (tmp_path / "lpzero.yaml").write_text(project)
    check = f"from my_space import SPACE\n{follows}\n{reads}\nassert len(table) == 2\n"
    run(tmp_path, "-c", f"import sys; sys.path.append('.')\n{check}")
    verbs = "from lpzero.cli.main import run; run(['tables']); run(['counters', 'my-table'])"
    listed, counted = run(tmp_path, "-c", verbs).split("my-table: accuracy, space my-space")
    assert "my-table" in listed
    assert counted


def test_the_page_on_plug_ins_runs(tmp_path: Path) -> None:
    (operation,) = blocks("plug-ins.md", "python")
    (tmp_path / "my_ops.py").write_text(operation)
    words = ("export", "sum(softsign(W))", "--plugin", "my_ops.py", "--to")
    assert "op_softsign" in run(tmp_path, "-m", "lpzero.cli.main", *words, "python")
    assert "Abs" in run(tmp_path, "-m", "lpzero.cli.main", *words, "sympy")
