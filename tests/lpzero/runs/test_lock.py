"""One process at a time works in a directory; a file system without locks is named."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path
from typing import NoReturn

import pytest

from lpzero.errors import RunError
from lpzero.runs.directory import locked


def without_locks(handle: int, operation: int) -> NoReturn:
    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))


def test_a_file_system_without_locks_is_said_and_can_be_used_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fcntl, "flock", without_locks)
    said = r"cannot lock files \(No locks available\).*--no-lock"
    with pytest.raises(RunError, match=said), locked(tmp_path):
        pass
    with locked(tmp_path, lock=False):
        assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"


def test_a_lock_in_use_names_its_process(tmp_path: Path) -> None:
    said = f"in use by process {os.getpid()}"
    with locked(tmp_path), pytest.raises(RunError, match=said), locked(tmp_path):
        pass
