"""A table build that is watched while it works: the trainings that are done."""

from __future__ import annotations

from typing import Any

from lpzero.runs.config import StoredConfig
from lpzero.runs.journal_follower import JournalFollower
from lpzero.runs.layout import JOURNAL, place
from lpzero.runs.live_run import Now, OpenedAgain
from lpzero.runs.run import Run
from lpzero.training.record import read
from lpzero.training.table_build import is_training


class LiveBuild(OpenedAgain):
    """The build as it was last read."""

    def __init__(self, config: StoredConfig) -> None:
        super().__init__(config)
        path = config.folder / JOURNAL
        self._journal = JournalFollower(path, is_training, place(config.hash, JOURNAL))
        self._forget()

    def _forget(self) -> None:
        self._done = self._failed = 0
        self._seconds = 0.0

    def update(self, seconds: float) -> Run | None:
        """The build with what is new."""
        piece = self._journal.read()
        if piece.is_first:
            self._forget()
        for record in piece.records:
            self._done += 1
            self._failed += record["target"] is None
            self._seconds += record["seconds"]
        return super().update(seconds)

    def _read(self) -> Run | None:
        return read(self.config)

    def now(self) -> Now:
        """Trainings done of those planned, failures, and the mean time of one."""
        total = _planned(self.config.request.get("plan"))
        of = f" of {total:,}" if total else ""
        facts = {"trainings": f"{self._done:,}{of}", "failed": f"{self._failed:,}"}
        if self._done:
            facts["seconds of a training"] = f"{self._seconds / self._done:.1f}"
        return Now(facts)


def _planned(plan: Any) -> int | None:
    """The number of trainings of a plan; None if it cannot be read."""
    try:
        repeated = plan["n_repeated"] * plan["n_repeated_seeds"]
        return int(repeated + (plan["n_archs"] - plan["n_repeated"]) * plan["n_seeds"])
    except (KeyError, TypeError, ValueError):
        return None


def watch(config: StoredConfig) -> LiveBuild:
    """What follows the table build with that config."""
    return LiveBuild(config)
