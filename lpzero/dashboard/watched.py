"""A run as the dashboard shows it: a line of the list, and a page that follows it.

The line is rebuilt only when a file of the run has changed; only small files and the ends of
large ones are read for it. The page is the one that `lpzero report` writes, after a section on the
run's progress.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lpzero.dashboard.places import Place, shown, size_of, why_unreadable
from lpzero.errors import LPZeroError, RunError
from lpzero.report.chart import Chart
from lpzero.report.figures import convergence
from lpzero.report.markup import Child, Markup, element
from lpzero.report.page import Content, Section, content_of
from lpzero.runs.config import StoredConfig, read_config
from lpzero.runs.layout import CONFIG, LOCK
from lpzero.runs.run import (
    Line,
    LiveRun,
    Now,
    Run,
    Stamp,
    follow_run,
    kind_of,
    line_of,
    line_of_result,
    report_unexpected_content,
    stamp,
)
from spaces.untrusted import open_regular, read_regular

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
        said = _line(config)
    except (
        *(LPZeroError, OSError, ValueError, LookupError, TypeError),
        *(AttributeError, ArithmeticError),
    ) as error:
        return replace(line, remark=shown(str(error)))
    return replace(
        line,
        kind=shown(config.kind, 40),
        table=shown(said.table, 80),
        state=said.state,
        progress=shown(said.progress, 80),
        best=shown(said.best, 80),
    )


_LOCKS = Path("/proc/locks")
_RECENT = 10.0  # seconds


def _line(config: StoredConfig) -> Line:
    """What lists say of the run; of a kind that this version does not know, what any run says."""
    try:
        kind_of(config)
    except RunError:
        return line_of_result(config)
    return line_of(config)


def is_active(folder: Path, changed: float) -> bool:
    """Whether a process of this machine works in the directory, last changed at that time.

    Trying the lock would hold it for a moment, and a run that starts in that moment would be
    refused: the kernel's list of locks is read instead.

    Where the kernel lists no locks, and for runs started with --no-lock, the process that the lock
    file names must be alive and must have written something a moment ago.
    """
    try:
        with open_regular(folder / LOCK, follow_links=False) as file:
            inode, holder = os.fstat(file.fileno()).st_ino, int(file.read(32))
    except (OSError, ValueError):
        return False  # no lock file, or an empty one: its process ended by itself
    if _is_locked(inode, holder):
        return True
    return time.time() - changed < _RECENT and _is_alive(holder)


def _is_locked(inode: int, holder: int) -> bool:
    """Whether the kernel lists a lock of the process on the file.

    Devices are not compared: some file systems number them differently in the list.
    """
    lines: list[str] = []
    with suppress(OSError):
        lines = read_regular(_LOCKS).decode(errors="replace").splitlines()
    # such as "1: FLOCK  ADVISORY  WRITE 3039 fe:00:2285607 0 EOF"
    held = ((words[1], words[4], words[5].rpartition(":")[2]) for line in lines
            if len(words := line.split()) > 5)  # fmt: skip
    return ("FLOCK", str(holder), str(inode)) in held


def _is_alive(process: int) -> bool:
    if process <= 0:
        return False
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True  # another user's
    return True


# What one wants to see first of a run without a result; they stand below the facts then.
_WATCHED_FIGURES = ("convergence", "front")


def with_progress(
    line: Summary, now: Now, share: float, folder: str, sections: Sequence[Section] = ()
) -> list[Section]:
    """The sections of a run's page after one on its progress.

    While there is no result, the figures that change stand in that first section.
    """
    facts: dict[str, Child] = {"state": state(line.state), **now.facts}
    if share < 1:
        facts["journal"] = f"{share:.0%} read"
    parts: list[Markup | Chart | None] = [_tiles(facts), *_figure(now)]
    kept = list(sections)
    if line.state == "finished":
        command = element("code", f"lpzero report {shlex.quote(folder)}")
        parts.append(element("p", "This page as one file: ", command, class_="note"))
    elif line.state != UNREADABLE:
        parts += [part for section in sections for part in section.parts if _is_watched(part)]
        kept = [
            replace(section, parts=[part for part in section.parts if not _is_watched(part)])
            for section in sections
        ]
    title = "What is it doing?" if line.state == RUNNING else "How far is it?"
    return [Section("progress", title, parts, "Progress"), *kept]


def state(name: str) -> Markup:
    """A state in the colour of its class, and always in words."""
    return element("span", name, class_=f"state {name.split()[0]}")


def _tiles(facts: dict[str, Child]) -> Markup:
    tiles = [
        element("div", element("dt", name), element("dd", value)) for name, value in facts.items()
    ]
    return element("dl", *tiles, class_="tiles")


def _is_watched(part: Markup | Chart | None) -> bool:
    return isinstance(part, Chart) and part.name.startswith(_WATCHED_FIGURES)


def _figure(now: Now) -> list[Chart]:
    if not now.history:
        return []
    data = convergence.convergence(
        {"this run": [now.history]}, counted=now.counted, measured=now.measured
    )
    last = now.history[-1]
    return [
        convergence.chart(
            data,
            "so-far",
            f"{now.measured.capitalize()} against {now.counted}.",
            f"Line chart; {last['fitness']:.6g} after {last['evaluated']:,.0f}.",
        )
    ]


PATIENCE = 0.5  # seconds of reading before an answer is given; the next request reads on


@dataclass(frozen=True, slots=True)
class View:
    """The content of a live page, and a digest that differs when the content does.

    `is_behind` if there is more to read at once.
    """

    content: Content
    version: str
    is_behind: bool = False

    def to_json(self) -> dict[str, Any]:
        """What the page's script needs to show this state."""
        return {**self.content.to_json(), "version": self.version, "behind": self.is_behind}


def view(content: Content, is_behind: bool = False) -> View:
    """The content with the digest of what the script gets."""
    text = json.dumps(content.to_json(), sort_keys=True)
    return View(content, hashlib.sha256(text.encode()).hexdigest()[:16], is_behind)


class Watched:
    """The run at a place; requests take turns."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._turn = threading.Lock()
        self._config: Stamp | None = None
        self._live: LiveRun | None = None
        self._sections: tuple[Run | None, Content | None] = None, None

    def look(self, line: Summary) -> tuple[Run | None, View]:
        """The run and its page as they are now; `line` is the run's line of the list."""
        with self._turn:
            try:
                run, content = self._content(line)
            except (LPZeroError, OSError) as error:
                run, content = None, self._without(line, [shown(str(error), 1000)])
            return run, view(content, self._live is not None and self._live.share < 1)

    def _content(self, line: Summary) -> tuple[Run | None, Content]:
        reason = why_unreadable(self.place.folder)
        if reason is not None:
            return None, self._without(line, [reason])
        with report_unexpected_content(self.place.folder):
            live = self._opened()
            run = live.update(PATIENCE)
            now, share = live.now(), live.share
            said = self._said(run)
        folder = str(self.place.folder)
        if said is None:
            remarks = [] if run is None else run.remarks
            sections = with_progress(line, now, share, folder)
            return run, Content(self._title(line), remarks, sections)
        sections = with_progress(line, now, share, folder, said.sections)
        return run, Content(said.title, said.remarks, sections)

    def _opened(self) -> LiveRun:
        """What follows the run; another one if the directory now holds another run."""
        now = stamp(self.place.folder, (CONFIG,))
        if self._live is None or now != self._config:
            config = read_config(self.place.folder)
            if config is None:
                raise RunError("it has no config.json")
            self._live = follow_run(config)
            self._config, self._sections = now, (None, None)
        return self._live

    def _said(self, run: Run | None) -> Content | None:
        """What the run's own page says; None if there is nothing to show yet."""
        if run is None:
            return None
        before, content = self._sections
        if before is not run:
            content = content_of(run)
            self._sections = run, content
        return content

    def _without(self, line: Summary, remarks: list[str]) -> Content:
        sections = with_progress(line, Now(), 1.0, str(self.place.folder))
        return Content(self._title(line), remarks, sections)

    def _title(self, line: Summary) -> str:
        return f"{line.table}: {line.kind}" if line.kind else line.name
