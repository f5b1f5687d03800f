"""The runs below the folder, as the dashboard knows them: found again when it is asked."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

from lpzero.dashboard.comparison import beside
from lpzero.dashboard.places import Place, find_runs
from lpzero.dashboard.watched import Summaries, Summary, View, Watched, view
from lpzero.runs.run import Run

_FRESH = 1.0  # seconds for which what was found is used again
_MOST_WATCHED = 64


class UnknownRunError(LookupError):
    """No run below the folder has that id."""


class Library:
    """The runs below `root`; nothing outside it can be asked for."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._turn = threading.Lock()
        self._summaries = Summaries()
        self._watched: OrderedDict[str, Watched] = OrderedDict()
        self._places: dict[str, Place] = {}
        self._is_cut = False
        self._looked = float("-inf")

    def runs(self) -> list[Summary]:
        """The line of every run."""
        with self._turn:
            self._find(_FRESH)
            return [self._summaries.of(place) for place in self._places.values()]

    def remarks(self) -> list[str]:
        """What the list leaves out."""
        return ["The folder is very large: not all of it was searched."] if self._is_cut else []

    def look(self, id: str) -> tuple[Summary, Run | None, View]:
        """A run's line, the run if it can be read, and its page as they are now."""
        with self._turn:
            if id not in self._places:
                self._find(_FRESH)
            if id not in self._places:
                raise UnknownRunError(id)
            place = self._places[id]
            line = self._summaries.of(place)
            watched = self._watched.pop(id, None) or Watched(place)
            self._watched[id] = watched
            while len(self._watched) > _MOST_WATCHED:
                self._watched.popitem(last=False)
        run, seen = watched.look(line)
        return line, run, seen

    def compare(self, ids: Sequence[str], base: str) -> View:
        """The page of several runs beside each other."""
        looked = [self.look(id) for id in dict.fromkeys(ids)]
        is_behind = any(seen.is_behind for _, _, seen in looked)
        return view(beside([(line, run) for line, run, _ in looked], base), is_behind)

    def _find(self, fresh: float) -> None:
        if time.monotonic() - self._looked < fresh:
            return
        found = find_runs(self.root)
        self._places, self._is_cut = found.places, found.is_cut
        self._looked = time.monotonic()
