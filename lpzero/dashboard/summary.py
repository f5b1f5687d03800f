"""A run in one line of the list: kind, table, state, progress, best, age, size.

Only small files and the ends of large ones are read, and a line is made again only when a file of
the run has changed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from lpzero.dashboard.activity import is_active
from lpzero.dashboard.places import Place, shown, size_of, why_unreadable
from lpzero.errors import LPZeroError
from lpzero.runs.command import kind_of
from lpzero.runs.config import read_config
from lpzero.runs.layout import CONFIG
from lpzero.runs.live_run import Stamp, stamp

RUNNING, UNREADABLE = "running", "unreadable"


@dataclass(frozen=True, slots=True)
class Summary:
    """A run's line; `remark` says why a run cannot be read. Times are seconds of the epoch."""

    id: str
    name: str
    kind: str = ""
    table: str = ""
    state: str = UNREADABLE
    progress: str = ""
    best: str = ""
    started: float = 0.0
    changed: float = 0.0
    size: int = 0
    remark: str = ""

    def to_json(self) -> dict[str, Any]:
        """The line for the page's script."""
        return {name: getattr(self, name) for name in self.__slots__}


class Summaries:
    """The lines of runs, kept until a file of theirs changes."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Stamp, Summary]] = {}

    def of(self, place: Place) -> Summary:
        """The run's line as it is now."""
        now = (*stamp(place.folder), *stamp(place.folder, (CONFIG,)))
        before, line = self._kept.get(place.id, (None, None))
        if line is None or before != now:
            changed = max(time for _, _, time in now) / 1e9
            line = replace(_summary(place), changed=changed, started=now[-1][2] / 1e9)
            self._kept[place.id] = now, line
        # A process may start or end without changing a file.
        is_running = line.state != UNREADABLE and is_active(place.folder, line.changed)
        return replace(line, state=RUNNING) if is_running else line


def _summary(place: Place) -> Summary:
    line = Summary(place.id, place.name, size=size_of(place.folder))
    reason = why_unreadable(place.folder)
    if reason is not None:
        return replace(line, remark=shown(reason))
    try:
        config = read_config(place.folder)
        if config is None:
            return replace(line, remark="it has no config.json")
        said = kind_of(config).line(config)
    except (LPZeroError, OSError, ValueError, LookupError, TypeError) as error:
        return replace(line, remark=shown(str(error)))
    return replace(
        line,
        kind=shown(config.kind, 40),
        table=shown(said.table, 80),
        state=said.state,
        progress=shown(said.progress, 80),
        best=shown(said.best, 80),
    )
