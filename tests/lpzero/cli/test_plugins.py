"""--plugin on the command line: what it declares, and what happens when it fails.

tests/lpzero/parallel/test_clusters.py runs every verb with the example.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "docs" / "examples" / "my_work.py"
OPERATION = """
from primitives.registry import unary

@unary(latex="x", sympy=lambda x, s: x / (1 + s.Abs(x)))
def softsign(x, xp):
    return x / (1 + xp.abs(x))
"""


def run_python(folder: Path, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run Python in the folder, as a process of its own, because plug-ins change the language."""
    environment = {
        "PYTHONPATH": str(ROOT),
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder),
        "LPZERO_CACHE": str(folder / "cache"),
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [sys.executable, "-P", *words],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done


def command(folder: Path, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run lpzero in the folder."""
    return run_python(folder, "-m", "lpzero.cli.main", *arguments, code=code)


def test_a_primitive_of_a_plug_in_is_exported_with_its_body(tmp_path: Path) -> None:
    (tmp_path / "ops.py").write_text(OPERATION)
    words = ("export", "sum(softsign(W))", "--plugin", "ops.py", "--to")
    done = command(tmp_path, *words, "python")
    assert "running your plug-in ops.py" in done.stderr
    assert "def op_softsign(x)" in done.stdout
    assert "softsign" in command(tmp_path, *words, "json").stdout
    missing = command(tmp_path, "export", "sum(softsign(W))", "--to", "json", code=2)
    assert "unknown name 'softsign'" in missing.stderr


def test_a_plug_in_that_fails_names_itself_and_stops_only_what_needs_it(tmp_path: Path) -> None:
    (tmp_path / "ops.py").write_text(OPERATION + "\nraise RuntimeError('on purpose')\n")
    done = command(tmp_path, "export", "sum(W)", "--plugin", "ops.py", "--to", "json")
    assert "plug-in ops.py is ignored: ops.py fails: RuntimeError: on purpose" in done.stderr
    needs = ("export", "sum(softsign(W))", "--plugin", "ops.py", "--to", "json")
    assert "unknown name 'softsign'" in command(tmp_path, *needs, code=2).stderr
    absent = command(tmp_path, "rules", "--plugin", "none.py", code=2)
    assert "there is no plug-in none.py" in absent.stderr


def test_loops_and_tables_of_a_plug_in_are_known(tmp_path: Path) -> None:
    loop = "from lpzero.search.loops.random_search import RandomSearch\n"
    loop += "from dataclasses import dataclass\n@dataclass(frozen=True)\n"
    loop += "class Mine(RandomSearch):\n    name = 'mine'\nLOOPS = (Mine,)\n"
    (tmp_path / "more.py").write_text(
        loop + "TABLES = {'my-columns': {'file': 'c.csv', 'target': 'y'}}\n"
    )
    (tmp_path / "c.csv").write_text("x,y\n" + "".join(f"{i},{i * i % 7}\n" for i in range(20)))
    assert "mine" in command(tmp_path, "search", "--plugin", "more.py", "--help").stdout
    done = command(tmp_path, "rank", "my-columns", "--plugin", "more.py")
    assert "my-columns: y, 1 columns" in done.stdout


def test_equal_texts_have_equal_addresses_wherever_the_file_is(tmp_path: Path) -> None:
    script = "import spaces, random; s = spaces.load('my_work:SPACE');"
    script += "from lpzero.sketches.sketch import SketchOptions, address;"
    script += "print(address(s, s.sample(random.Random(0)), SketchOptions()))"
    found = set()
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "my_work.py").write_text(EXAMPLE.read_text())
        found.add(run_python(folder, "-c", script).stdout)
    assert len(found) == 1
    assert len(found.pop().strip()) == 64
