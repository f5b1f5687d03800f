"""--plugin on the command line: what it declares, and what happens when it fails.

tests/lpzero/parallel/test_clusters.py runs every verb with the example.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import spaces
from lpzero.cli.main import run
from lpzero.sketches.sketch import SketchOptions, address
from tests.faults.attempt import BUSY, Attempt, attempt

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "docs" / "examples" / "my_work.py"
Act = Callable[[list[str]], int]
OPERATION = """
from primitives.registry import unary

@unary(latex="x", sympy=lambda x, s: x / (1 + s.Abs(x)))
def softsign(x, xp):
    return x / (1 + xp.abs(x))
"""


def command(folder: Path, *words: str, code: int = 0, act: Act = run) -> Attempt:
    """Run lpzero in the folder, in a fork of this process, because plug-ins change the language."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = attempt(words, folder / "said", act=act, limit=BUSY)
    assert done.code == code, done.err
    return done


def test_a_primitive_of_a_plug_in_is_exported_with_its_body(tmp_path: Path) -> None:
    (tmp_path / "ops.py").write_text(OPERATION)
    words = ("export", "sum(softsign(W))", "--plugin", "ops.py", "--to")
    done = command(tmp_path, *words, "python")
    assert "running your plug-in ops.py" in done.err
    assert "def op_softsign(x)" in done.out
    assert "softsign" in command(tmp_path, *words, "json").out
    missing = command(tmp_path, "export", "sum(softsign(W))", "--to", "json", code=2)
    assert "unknown name 'softsign'" in missing.err


def test_a_plug_in_that_fails_names_itself_and_stops_only_what_needs_it(tmp_path: Path) -> None:
    (tmp_path / "ops.py").write_text(OPERATION + "\nraise RuntimeError('on purpose')\n")
    done = command(tmp_path, "export", "sum(W)", "--plugin", "ops.py", "--to", "json")
    assert "plug-in ops.py is ignored: ops.py fails: RuntimeError: on purpose" in done.err
    needs = ("export", "sum(softsign(W))", "--plugin", "ops.py", "--to", "json")
    assert "unknown name 'softsign'" in command(tmp_path, *needs, code=2).err
    absent = command(tmp_path, "rules", "--plugin", "none.py", code=2)
    assert "there is no plug-in none.py" in absent.err


def test_loops_and_tables_of_a_plug_in_are_known(tmp_path: Path) -> None:
    loop = "from lpzero.search.loops.random_search import RandomSearch\n"
    loop += "from dataclasses import dataclass\n@dataclass(frozen=True)\n"
    loop += "class Mine(RandomSearch):\n    name = 'mine'\nLOOPS = (Mine,)\n"
    (tmp_path / "more.py").write_text(
        loop + "TABLES = {'my-columns': {'file': 'c.csv', 'target': 'y'}}\n"
    )
    (tmp_path / "c.csv").write_text("x,y\n" + "".join(f"{i},{i * i % 7}\n" for i in range(20)))
    # Its options are those of the loops known when the verb is imported, here perhaps long ago.
    words = [sys.executable, "-P", "-m", "lpzero.cli.main", "search", "--plugin", "more.py"]
    around = {**os.environ, "PYTHONPATH": str(ROOT)}
    shown = subprocess.run([*words, "--help"], cwd=tmp_path, env=around, capture_output=True)
    assert b"mine" in shown.stdout, shown.stderr
    done = command(tmp_path, "rank", "my-columns", "--plugin", "more.py")
    assert "my-columns: y, 1 columns" in done.out


def print_an_address(_: list[str]) -> int:
    space = spaces.load("my_work:SPACE")
    print(address(space, space.sample(random.Random(0)), SketchOptions()))
    return 0


def test_equal_texts_have_equal_addresses_wherever_the_file_is(tmp_path: Path) -> None:
    found = set()
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "my_work.py").write_text(EXAMPLE.read_text())
        found.add(command(folder, act=print_an_address).out)
    assert len(found) == 1
    assert len(found.pop().strip()) == 64
