"""A run that somebody looks at: its page is made again only when the run has changed.

The page is the one that `lpzero report` writes, after a section on the run's progress.
"""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import dataclass
from typing import Any

from lpzero.dashboard.places import Place, shown, why_unreadable
from lpzero.dashboard.progress import with_progress
from lpzero.dashboard.summary import Summary
from lpzero.errors import LPZeroError, RunError
from lpzero.report.contents import content_of
from lpzero.report.sections import Content
from lpzero.runs.config import read_config
from lpzero.runs.layout import CONFIG
from lpzero.runs.live_run import LiveRun, Now, Stamp, stamp, watch
from lpzero.runs.run import Run, report_unexpected_content

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
        live = self._opened()
        run = live.update(PATIENCE)
        now, share = live.now(), live.share
        with report_unexpected_content(self.place.folder):
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
            self._live = watch(config)
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
