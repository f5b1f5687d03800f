"""A run that is watched while it works: read again when its files change, and only what is new.

Each kind of run may have a watcher of its own that reads its journal as it grows; the others are
opened again. Watching changes nothing in the directory and takes no lock.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Protocol

from lpzero.runs.config import StoredConfig
from lpzero.runs.layout import HALL, HISTORY, JOURNAL, RESULT, SCORES, SHARDS, TABLE
from lpzero.runs.run import READERS, Run, report_unexpected_content

_WATCHED = (JOURNAL, RESULT, SCORES, HALL, HISTORY, SHARDS, TABLE)
# Kind of run -> the module whose `watch(config)` reads it as it grows.
WATCHERS = {
    "campaign": "lpzero.discover.live_campaign",
}
Stamp = tuple[tuple[int, int, int], ...]


class LiveRun(Protocol):
    """A run as it was last read; `share` of its journal was read, 1.0 if all of it."""

    share: float

    def update(self, seconds: float) -> Run:
        """The run with what is new, after about that many seconds at most."""


def watch(config: StoredConfig) -> LiveRun:
    """What follows the run with that config."""
    module = WATCHERS.get(config.kind)
    if module is None:
        return OpenedAgain(config)
    live: LiveRun = import_module(module).watch(config)
    return live


def stamp(folder: Path, names: Sequence[str] = _WATCHED) -> Stamp:
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

    def __init__(self, config: StoredConfig) -> None:
        self.config, self.share = config, 1.0
        self._stamp: Stamp | None = None
        self._run: Run | None = None

    def update(self, seconds: float) -> Run:
        """The run as it is now."""
        now = stamp(self.config.folder)
        if self._run is None or now != self._stamp:
            with report_unexpected_content(self.config.folder):
                self._run = import_module(READERS[self.config.kind]).read(self.config)
            self._stamp = now
        assert self._run is not None
        return self._run
