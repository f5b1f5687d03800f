"""Storage of a campaign: in a run's directory, or only in memory.

The journal has every formula tried, with its lineage. The checkpoint records how many of its lines
it covers, so that a campaign killed at any time resumes with the same results as an uninterrupted
one.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from lpzero import plugins
from lpzero.discover.candidate import Candidate
from lpzero.discover.evolution import KnownKeys, State
from lpzero.discover.settings import Settings
from lpzero.runs.config import RunConfig
from lpzero.runs.directory import RunDirectory
from lpzero.runs.layout import HALL, HALL_CSV, HISTORY
from primitives.errors import FormulaError

KIND = "campaign"
Rows = list[dict[str, Any]]


def campaign_config(
    settings: Settings,
    tables: Sequence[Mapping[str, str]],
    split_seed: int,
    sketch: dict[str, Any],
    files: Mapping[str, Any] | None = None,
) -> RunConfig:
    """The config of a campaign; only the number of generations may change on resuming.

    `files` say how tables of the user's were read, by name; a file may have moved, because the
    table's digest tells whether it is the same.
    """
    request: dict[str, Any] = {
        "tables": list(tables),
        "split_seed": split_seed,
        "sketch": sketch,
        "settings": settings.to_json(),
    }
    growing: tuple[tuple[str, ...], ...] = (("settings", "generations"),)
    if files:
        request["files"], growing = dict(files), (*growing, ("files",))
    if plugins.own_primitives():
        # The digests are part of the run, the files may have moved.
        request["primitives"] = plugins.own_primitives()
        request["plugins"], growing = plugins.given(), (*growing, ("plugins",))
    return RunConfig(KIND, request, growing=growing)


class Storage:
    """The storage of a campaign's loop, which stores nothing: the campaign is in memory alone."""

    def __init__(self) -> None:
        self.remarks: list[str] = []

    def restore(self, rng: random.Random) -> State | None:
        return None

    def after_checkpoint(self) -> list[Candidate]:
        return []

    def record(self, state: State) -> None:
        pass

    def save(self, state: State, rng: random.Random) -> None:
        pass

    def publish(self, hall: Rows, history: Rows) -> None:
        pass


class InDirectory(Storage):
    """A campaign in a run's directory, which has been entered.

    `remarks` are on repairs, and on versions that changed since the campaign started.
    """

    def __init__(self, directory: RunDirectory) -> None:
        self.directory, self.remarks = directory, directory.remarks
        self.tables = [table["name"] for table in directory.config.request["tables"]]

    def restore(self, rng: random.Random) -> State | None:
        """The saved state, with `rng` set to its random state; None if there is none.

        Without a valid checkpoint the campaign starts again and replays its journal.
        """
        journal = self.directory.journal
        checkpoint = self.directory.read_checkpoint()
        state = None if checkpoint is None else self._restored(checkpoint, rng)
        if state is None and len(journal):
            self.remarks.append("no checkpoint matches the journal: replaying it from the start")
        return state

    def _restored(self, checkpoint: Mapping[str, Any], rng: random.Random) -> State | None:
        journal = self.directory.journal
        try:
            lines = [
                Candidate.from_json(r) for r in journal.records(0, checkpoint["journal_lines"])
            ]
            if len(lines) < checkpoint["journal_lines"]:
                return None
            kind, numbers, gauss = checkpoint["random"]
            state = State(
                checkpoint["next_generation"],
                len(lines),
                tuple(lines[number] for number in checkpoint["population"]),
                KnownKeys({line.key: line.id for line in lines if line.key is not None}),
                tuple(lines),
                checkpoint["exhausted"],
            )
            rng.setstate((kind, tuple(numbers), gauss))
        except (LookupError, AttributeError, TypeError, ValueError):
            return None  # valid JSON, but not a valid checkpoint
        journal.go_to(len(lines))
        return state

    def after_checkpoint(self) -> list[Candidate]:
        """The candidates that an earlier process recorded after its last checkpoint.

        The journal is cut at a line whose formula cannot be read.
        """
        journal = self.directory.journal
        start, candidates = journal.position, []
        for number, record in enumerate(journal.records(start), start):
            candidate = Candidate.from_json(record)
            try:
                _ = candidate.formula
            except (FormulaError, RecursionError):
                journal.cut(number)
                self.remarks.append(
                    f"{journal.path}: line {number + 1} is not a formula that was tried: it and the"
                    " lines after it were cut off and are computed again"
                )
                break
            candidates.append(candidate)
        return candidates

    def record(self, state: State) -> None:
        """Append the candidates of the last step to the journal."""
        self.directory.journal.append(c.to_json(self.tables) for c in state.tried)

    def save(self, state: State, rng: random.Random) -> None:
        """Write a checkpoint to resume from."""
        kind, numbers, gauss = rng.getstate()
        self.directory.write_checkpoint(
            {
                "next_generation": state.generation,
                "exhausted": state.exhausted,
                "population": [candidate.id for candidate in state.population],
                "random": [kind, list(numbers), gauss],
            }
        )

    def publish(self, hall: Rows, history: Rows) -> None:
        """Write the hall of fame and the history for users."""
        self.directory.write_json(HALL, hall)
        self.directory.write_csv(HALL_CSV, hall)
        self.directory.write_csv(HISTORY, history)
