"""The examples in docs: scripts, and notebooks with the same cells."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.faults.attempt import BUSY, attempt
from tests.lpzero.few_rows import few_rows

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
# What each prints, or writes to a file, when it is run.
SAYS = {
    "objects": ("rho 0.", "on 24 test rows", "paper.tex"),
    "discover": ("on 8 test rows", "reliable", "run/result.json"),
    "own_model": ("parameters", "32 wide", None),
}


def cells_of(name: str) -> list[str]:
    notebook = json.loads((EXAMPLES / f"{name}.ipynb").read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return ["".join(cell["source"]).strip() for cell in cells]


def one_module(cells: list[str]) -> int:
    """Run the cells of a notebook, which the script has too, one after the other."""
    sys.modules["__main__"] = module = ModuleType("__main__")
    exec("\n".join(cells), module.__dict__)  # noqa: S102
    return 0


@pytest.mark.parametrize("name", SAYS)
def test_the_notebook_has_the_cells_of_the_script(name: str) -> None:
    _, _, code = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8").split('"""', 2)
    cells = [cell.strip() for cell in re.split(r"^# %% .*$", code, flags=re.MULTILINE)]
    assert cells_of(name) == cells
    assert len([line for line in code.splitlines() if line.strip()]) <= 40


@pytest.mark.slow
@pytest.mark.parametrize("name", SAYS)
def test_the_example_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    with few_rows():
        done = attempt(cells_of(name), tmp_path / "said", act=one_module, limit=BUSY)
    assert done.code == 0, done.err
    *words, written = SAYS[name]
    assert all(word in done.out for word in words)
    if written is not None:
        assert (tmp_path / written).stat().st_size
    if name == "objects":
        assert "\\begin{equation}" in (tmp_path / "paper.tex").read_text()
