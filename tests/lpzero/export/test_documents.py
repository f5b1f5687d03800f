"""The search loop on the page of exports runs, with a module written a moment before."""

from __future__ import annotations

import importlib
import math
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.lpzero.export.network_tensors import exported, written

PAGE = Path(__file__).parents[3] / "docs" / "exports.md"


def test_the_loop_on_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "best.py").write_text(written(exported("sum(l1(mul(G, W)))"), "python"))
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    loop = code.split("choices = ")[1]
    assert 8 <= len([line for line in loop.splitlines() if line.strip()]) <= 16
    names: dict[str, Any] = {}
    with torch.random.fork_rng():
        exec(compile(code, str(PAGE), "exec"), names)  # noqa: S102
    sys.modules.pop("best")
    scores = names["scores"]
    assert len(scores) > 8
    assert all(math.isfinite(score) for score in scores.values())
    assert scores[names["winner"]] == max(scores.values())
