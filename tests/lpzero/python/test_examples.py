"""The example of objects in docs: a script, and a notebook with the same cells."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
SCRIPT, NOTEBOOK = EXAMPLES / "objects.py", EXAMPLES / "objects.ipynb"


def cells_of_the_notebook() -> list[str]:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]).strip() for cell in cells if cell["cell_type"] == "code"]


def test_the_notebook_has_the_cells_of_the_script() -> None:
    _, _, code = SCRIPT.read_text(encoding="utf-8").split('"""', 2)
    cells = [cell.strip() for cell in re.split(r"^# %% .*$", code, flags=re.MULTILINE)]
    assert cells_of_the_notebook() == cells
    assert len([line for line in code.splitlines() if line.strip()]) <= 40


@pytest.mark.slow
def test_the_example_runs(tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    pytest.importorskip("pandas")
    # The cells of the notebook, which the script has too, run one after the other in one module.
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(cells_of_the_notebook())],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "rho 0." in done.stdout
    assert "on 24 test rows" in done.stdout
    assert "\\begin{equation}" in (tmp_path / "paper.tex").read_text()
