"""Where a campaign is kept: in a directory, or in memory alone."""

from __future__ import annotations

import random
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from lpzero.discover import checkpoint
from lpzero.discover.candidate import Candidate
from lpzero.discover.checkpoint import Config
from lpzero.discover.generation import State
from lpzero.discover.journal import Journal
from lpzero.runs import directory as files
from lpzero.runs.errors import RunError

Rows = list[dict[str, Any]]


class Storage(Protocol):
    """What the loop asks of the place a campaign is kept in."""

    remarks: list[str]

    def begin(self, rng: random.Random) -> State | None: ...
    def ahead(self) -> list[Candidate]: ...
    def record(self, state: State) -> None: ...
    def save(self, state: State, rng: random.Random) -> None: ...
    def publish(self, hall: Rows, history: Rows) -> None: ...


class InMemory:
    """Keeps nothing beyond the process."""

    def __init__(self) -> None:
        self.remarks: list[str] = []

    def begin(self, rng: random.Random) -> State | None:
        return None

    def ahead(self) -> list[Candidate]:
        return []

    def record(self, state: State) -> None:
        pass

    def save(self, state: State, rng: random.Random) -> None:
        pass

    def publish(self, hall: Rows, history: Rows) -> None:
        pass


class CampaignDirectory:
    """A campaign's directory while this process runs it; enter it to lock it.

    `remarks` say what had to be repaired.
    """

    def __init__(self, folder: Path, config: Config, resume: bool) -> None:
        self.folder, self.config, self.resume = folder, config, resume
        self.remarks: list[str] = []
        self._stack = ExitStack()
        self._journal: Journal | None = None

    def __enter__(self) -> CampaignDirectory:
        with ExitStack() as stack:
            stack.enter_context(files.locked(self.folder))
            found = checkpoint.read_config(self.folder)
            if found is None:
                files.claim(self.folder, "campaign", self.config.to_json())
            else:
                if not self.resume:
                    raise RunError(
                        f"{self.folder} holds a campaign: go on with --resume,"
                        " or choose another --out"
                    )
                checkpoint.check_same(self.folder, found, self.config)
                self.remarks += checkpoint.changed_versions(found)
            names = [table["name"] for table in self.config.tables]
            self._journal = stack.enter_context(Journal(self.folder / files.JOURNAL, names))
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    @property
    def journal(self) -> Journal:
        """The open journal."""
        assert self._journal is not None, "enter the directory first"
        return self._journal

    def begin(self, rng: random.Random) -> State | None:
        """The saved state, if there is one; `rng` is set to go on from it."""
        if self.journal.torn:
            self.remarks.append(f"cut {self.journal.torn} bytes of a torn line off the journal")
        state = checkpoint.restore(self.folder, self.config, self.journal, rng)
        if state is None and len(self.journal):
            self.remarks.append("no saved state fits the journal: running over it from the start")
        return state

    def ahead(self) -> list[Candidate]:
        """What an earlier process wrote into the journal after the state was saved."""
        return self.journal.candidates(self.journal.n_lines)

    def record(self, state: State) -> None:
        """Append what the last step tried to the journal."""
        self.journal.append(state.tried)

    def save(self, state: State, rng: random.Random) -> None:
        """Write the state down, so that a later process can go on from here."""
        checkpoint.save(self.folder, self.config, state, rng, self.journal)

    def publish(self, hall: Rows, history: Rows) -> None:
        """Write the hall of fame and the history for people."""
        files.write_json(self.folder / files.HALL, hall)
        files.write_csv(self.folder / files.HALL_CSV, hall)
        files.write_csv(self.folder / files.HISTORY, history)
