"""A command that a stranger wrote into config.json is data: one that no run writes is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lpzero.runs.config import StoredConfig, stored_command


@pytest.mark.parametrize(
    "command",
    [
        None,
        [],
        {"verb": [], "options": {}},
        {"verb": {}, "options": {}},
        {"verb": "os", "options": {}},
        {"verb": "call", "options": {}},
        {"verb": "rank", "options": []},
        {"verb": "rank", "options": {"out": "elsewhere"}},
        {"verb": "rank", "options": {"plugins": "file.py"}},
    ],
)
def test_a_command_that_no_run_writes_is_not_read(command: Any) -> None:
    assert stored_command(StoredConfig(Path(), "ranking", "", {}, {}, command)) is None


def test_a_command_of_a_run_is_read() -> None:
    given = {"verb": "rank", "options": {"tables": ["nano-gpt2"]}}
    stored = stored_command(StoredConfig(Path(), "ranking", "", {}, {}, given))
    assert stored is not None
    assert stored.verb == "rank"
