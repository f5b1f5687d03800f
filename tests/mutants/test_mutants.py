"""The list of mutants fits the code, and the runner tests the copy with the bug."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutants import (
    engine_bugs,
    output_bugs,
    primitive_bugs,
    random_bugs,
    space_bugs,
)

LISTS = (engine_bugs, output_bugs, primitive_bugs, space_bugs)
MUTANTS = [mutant for each in LISTS for bugs in each.BUGS for mutant in bugs.mutants()]
ROOT = Path(__file__).parents[2]
# As the runner does: with experiments, and what they import of lpzero, imported before.
CODE = """
import sys
from pathlib import Path
from tests.mutants.run import _test
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


SOURCE = '''"""A module; "<" in it is text."""
import numpy as np


def ordered(rows, seed=3, is_wide=False):
    if not rows or len(rows) < 2:
        raise ValueError(f"{len(rows) > 2}")
    rng = np.random.default_rng(seed)
    rows.append(np.sum(rows, axis=0))
    return sorted(zip(rows, rng.random(len(rows))), key=len)
'''
KINDS = {
    "comparison": "(len(rows) <= 2)",
    "off by one": "len(rows) < 3",
    "negation": "if (not (not rows or len(rows) < 2)):",
    "raise": "        pass\n    rng",
    "seed": "default_rng(0)",
    "dropped call": "    pass\n    return",
    "axis": "axis=-1",
    "sort": "return list(zip(rows, rng.random(len(rows))))",
    "keyword": "sorted(zip(rows, rng.random(len(rows))))",
    "default": "is_wide=True",
    "swapped argument": "zip(rng.random(len(rows)), rows)",
    "dropped argument": "zip(rows)",
}


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """Three packages, one of which has twice as many lines as each of the others."""
    for name, times in (("lpzero/a", 2), ("primitives", 1), ("spaces", 1)):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "module.py").write_text(SOURCE * times)
    return tmp_path


def test_a_draw_has_every_kind_the_shares_of_the_packages_and_a_seed(sources: Path) -> None:
    found = random_bugs.draw(sources, 40, 1)
    assert [m.key for m in found] == [m.key for m in random_bugs.draw(sources, 40, 1)]
    assert [m.key for m in found] != [m.key for m in random_bugs.draw(sources, 40, 2)]
    assert len({m.key for m in found}) == 40
    shares = {of: sum(m.package == of for m in found) for of in {m.package for m in found}}
    assert shares == {"lpzero/a": 20, "primitives": 10, "spaces": 10}
    assert {m.kind for m in found} == set(KINDS)
    first = SOURCE.count("\n", 0, SOURCE.index("def ")) + 1
    assert {m.functions for m in found if m.package == "spaces"} == {(first,)}
    for kind, text in KINDS.items():
        assert any(text in m.new and text not in m.old for m in found if m.kind == kind), kind


def test_tests_that_enter_the_function_come_first_and_the_shortest_of_them() -> None:
    mutant = random_bugs.RandomMutant("a.py", "x", "y", "bug", (), None, "raise", (7,))
    traced = {"long": [2, ["a.py:7"]], "short": [1, ["a.py:7"]], "other": [0, ["a.py:70"]]}
    assert random_bugs.ordered(mutant, traced) == (["short", "long"], ["other"])


def test_the_interval_of_a_share_is_that_of_wilson() -> None:
    from scipy.stats import binomtest

    for n_caught, n in ((0, 7), (82, 109), (40, 40)):
        expected = binomtest(n_caught, n).proportion_ci(method="wilson")
        assert random_bugs.wilson(n_caught, n) == pytest.approx(tuple(expected), abs=1e-6)
