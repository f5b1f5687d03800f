"""Bars in a notebook: one output that is updated, without ipywidgets."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from lpzero.parallel import is_watched, progress


def test_a_bar_is_one_output_that_is_updated(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown: list[str] = []

    class Handle:
        def update(self, data: dict[str, str], raw: bool) -> None:
            shown.append(data["text/plain"])

    def display(data: dict[str, str], raw: bool, display_id: bool) -> Any:
        shown.append(data["text/plain"])
        return Handle()

    fake = ModuleType("IPython.display")
    vars(fake)["display"] = display
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", fake)
    monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
    assert is_watched()
    with progress("networks", 3) as advance:
        for _ in range(3):
            advance()
    assert "3/3" in shown[-1]
    assert "networks" in shown[-1]
    assert 2 <= len(shown) <= 6
    assert all(len(line) <= 80 and "\x1b" not in line for line in shown)
    assert capsys.readouterr() == ("", "")
