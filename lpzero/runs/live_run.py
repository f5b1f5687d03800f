"""A run that is watched while it works: only what is new is read.

A kind of run with a journal reads it as it grows; other kinds are opened again whenever a file of
theirs changes. Watching changes nothing in the directory and takes no lock.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from lpzero.runs.command import kind_of
from lpzero.runs.config import StoredConfig
from lpzero.runs.layout import HALL, HISTORY, JOURNAL, RESULT, SCORES, SHARDS, TABLE
from lpzero.runs.run import Run, report_unexpected_content

_FILES = (JOURNAL, RESULT, SCORES, HALL, HISTORY, SHARDS, TABLE)
Stamp = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True)
class Now:
    """How far a run is: facts by name, and the best so far where the run's own page has it not.

    `history` are rows with `evaluated` and `fitness`, `counted` and `measured` say of what.
    """

    facts: Mapping[str, str] = field(default_factory=dict)
    history: Sequence[Mapping[str, Any]] = ()
    counted: str = ""
    measured: str = ""


class LiveRun(Protocol):
    """A run as it was last read; `share` of its journal was read, 1.0 if all of it."""

    @property
    def share(self) -> float: ...

    def update(self, seconds: float) -> Run | None:
        """The run with what is new, after about that many seconds at most.

        The same object while nothing has changed; None if there is nothing to show but `now`.
        """

    def now(self) -> Now:
        """How far the run was when it was last read."""


def watch(config: StoredConfig) -> LiveRun:
    """What follows the run with that config."""
    live: LiveRun = kind_of(config).follow(config)
    return live


def stamp(folder: Path, names: Sequence[str] = _FILES) -> Stamp:
    """Inode, size and time of the files of the run: another one when something was written."""
    return tuple(_stamp(folder / name) for name in names)


def _stamp(path: Path) -> tuple[int, int, int]:
    try:
        about = os.stat(path, follow_symlinks=False)
    except OSError:
        return 0, 0, 0
    return about.st_ino, about.st_size, about.st_mtime_ns


class OpenedAgain:
    """A run that is read as a whole whenever one of its files has changed."""

    share = 1.0

    def __init__(self, config: StoredConfig) -> None:
        self.config = config
        self._stamp: Stamp | None = None
        self._run: Run | None = None

    def update(self, seconds: float) -> Run | None:
        """The run as it is now."""
        now = stamp(self.config.folder)
        if now != self._stamp:
            with report_unexpected_content(self.config.folder):
                self._run = self._read()
            self._stamp = now
        return self._run

    def _read(self) -> Run | None:
        run: Run = kind_of(self.config).read(self.config)
        return run

    def now(self) -> Now:
        """Nothing beyond what the run itself says."""
        return Now()
