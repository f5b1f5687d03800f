"""The list of mutants fits the code, and the runner tests the copy with the bug."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from experiments.mutants import engine_bugs, output_bugs, primitive_bugs, space_bugs

LISTS = (engine_bugs, output_bugs, primitive_bugs, space_bugs)
MUTANTS = [mutant for each in LISTS for bugs in each.BUGS for mutant in bugs.mutants()]
ROOT = Path(__file__).parents[2]
# As the runner does: with experiments, and what they import of lpzero, imported before.
CODE = """
import sys
from pathlib import Path
from experiments.mutants.run import _test
print("exit code", _test(Path(sys.argv[1]), ["test_it.py"], 60, "--tb=no"))
"""


def test_every_bug_can_be_put_into_the_code() -> None:
    """Code that is rewritten takes the text of a bug with it."""
    assert len(MUTANTS) > 280
    for mutant in MUTANTS:
        assert (ROOT / mutant.file).read_text().count(mutant.old) == 1, mutant
        assert mutant.old != mutant.new, mutant
        assert all((ROOT / test).is_file() for test in mutant.tests), mutant


@pytest.mark.slow
@pytest.mark.parametrize(
    ("start_of_lpzero", "told"),
    [
        ((ROOT / "lpzero" / "__init__.py").read_text(), "exit code 0"),
        (f"import sys; sys.path.insert(0, {str(ROOT)!r})\n", "this tree"),
    ],
)
def test_tests_see_the_packages_of_the_copy(
    tmp_path: Path, start_of_lpzero: str, told: str
) -> None:
    for name in ("lpzero", "primitives", "spaces"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("")
    (tmp_path / "lpzero" / "__init__.py").write_text(start_of_lpzero)
    (tmp_path / "lpzero" / "version.py").write_text("VERSION = 'with a bug'\n")
    text = "import lpzero.version\ndef test_it(): assert lpzero.version.VERSION == 'with a bug'\n"
    (tmp_path / "test_it.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path)], cwd=ROOT, capture_output=True, text=True
    )
    assert told in done.stdout + done.stderr
