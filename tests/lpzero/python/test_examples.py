"""The examples in docs: scripts, and notebooks with the same cells."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
# What each prints, or writes to a file, when it is run.
SAYS = {
    "objects": ("rho 0.", "on 24 test rows", "paper.tex"),
    "discover": ("on 29 test rows", "reliable", "run/result.json"),
    "own_model": ("parameters", "32 wide", None),
}


def cells_of(name: str) -> list[str]:
    notebook = json.loads((EXAMPLES / f"{name}.ipynb").read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return ["".join(cell["source"]).strip() for cell in cells]


@pytest.mark.parametrize("name", SAYS)
def test_the_notebook_has_the_cells_of_the_script(name: str) -> None:
    _, _, code = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8").split('"""', 2)
    cells = [cell.strip() for cell in re.split(r"^# %% .*$", code, flags=re.MULTILINE)]
    assert cells_of(name) == cells
    assert len([line for line in code.splitlines() if line.strip()]) <= 40


@pytest.mark.slow
@pytest.mark.parametrize("name", SAYS)
def test_the_example_runs(name: str, tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    pytest.importorskip("pandas")
    # The cells of the notebook, which the script has too, run one after the other in one module.
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(cells_of(name))],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    *words, written = SAYS[name]
    assert all(word in done.stdout for word in words)
    if written is not None:
        assert (tmp_path / written).stat().st_size
    if name == "objects":
        assert "\\begin{equation}" in (tmp_path / "paper.tex").read_text()
