"""The Python on the page about reports runs as it stands there."""

from __future__ import annotations

import json
import re
import runpy
import shutil
from pathlib import Path

import pytest

from lpzero.report import style
from tests.lpzero.small_campaign import discovery, table

pytestmark = pytest.mark.slow
PAGE = Path(__file__).parents[3] / "docs" / "report.md"


def test_the_example_draws_every_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(style, "encode", lambda figure, form: form.encode())  # drawing takes long
    discovery("runs/first", table=table(name="nano-gpt2")).run()
    for name in ("front", "random"):
        for seed in range(5):
            shutil.copytree("runs/first", f"runs/{name}-{seed}")
    Path("all.json").write_text(json.dumps([{"proxy": "a", "rho": 0.5, "rho_ci": [0.4, 0.6]}]))
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    Path("example.py").write_text(code)
    runpy.run_path("example.py")
    assert {path.stem for path in Path().glob("*.pdf")} == {
        "scores",
        "ranks",
        "proxies",
        "convergence",
        "pairs",
        "transfer",
    }
