"""Where a campaign is kept: in a run's directory, or in memory alone.

The journal holds every formula tried, with its lineage. Everything else follows from it: the
checkpoint says how many lines it stands for, so that a campaign killed at any moment resumes as if
it had not been.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from lpzero.discover.candidate import Candidate
from lpzero.discover.generation import State
from lpzero.discover.settings import Settings
from lpzero.runs.config import RunConfig
from lpzero.runs.directory import RunDirectory
from lpzero.runs.layout import HALL, HALL_CSV, HISTORY

KIND = "campaign"
_FIELDS = {"id", "generation", "operator", "parents", "formula"}
Rows = list[dict[str, Any]]


def campaign_config(
    settings: Settings, tables: Sequence[Mapping[str, str]], split_seed: int, sketch: dict[str, Any]
) -> RunConfig:
    """The config of a campaign; the number of generations may grow, all else is fixed."""
    request = {
        "tables": list(tables),
        "split_seed": split_seed,
        "sketch": sketch,
        "settings": settings.to_json(),
    }
    return RunConfig(KIND, request, growing=(("settings", "generations"),))


def is_candidate(record: dict[str, Any], number: int) -> bool:
    """Whether the record may stand at that line of a campaign's journal."""
    return record.get("id") == number and record.keys() >= _FIELDS


class Storage(Protocol):
    """What the loop asks of the place a campaign is kept in."""

    @property
    def remarks(self) -> list[str]: ...
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
    """A campaign in a run's directory; enter it to lock it."""

    def __init__(self, folder: Path, config: RunConfig, resume: bool) -> None:
        self.directory = RunDirectory(folder, config, resume, is_candidate)
        self.tables = [table["name"] for table in config.request["tables"]]

    def __enter__(self) -> CampaignDirectory:
        self.directory.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.directory.__exit__(kind, error, trace)

    @property
    def remarks(self) -> list[str]:
        """What had to be repaired, and what has changed since the campaign started."""
        return self.directory.remarks

    def begin(self, rng: random.Random) -> State | None:
        """The saved state, if there is one; `rng` is set to continue from it.

        Without one that fits, the campaign starts again and repeats its journal.
        """
        journal = self.directory.journal
        found = self.directory.read_checkpoint()
        state = None if found is None else self._restored(found, rng)
        if state is None and len(journal):
            self.remarks.append("no checkpoint fits the journal: repeating it from the start")
        return state

    def _restored(self, found: Mapping[str, Any], rng: random.Random) -> State | None:
        journal = self.directory.journal
        try:
            records = journal.records(stop=found["journal_lines"])
            lines = [Candidate.from_json(record) for record in records]
            kind, numbers, gauss = found["random"]
            state = State(
                found["next_generation"],
                len(lines),
                tuple(lines[number] for number in found["population"]),
                {line.key: line.id for line in lines if line.key is not None},
                tuple(lines),
                found["exhausted"],
            )
            rng.setstate((kind, tuple(numbers), gauss))
        except (KeyError, IndexError, TypeError, ValueError):
            return None  # readable, but not what we write
        journal.go_to(len(lines))
        return state

    def ahead(self) -> list[Candidate]:
        """What an earlier process wrote into the journal after its last checkpoint."""
        journal = self.directory.journal
        return [Candidate.from_json(record) for record in journal.records(journal.n_lines)]

    def record(self, state: State) -> None:
        """Append what the last step tried to the journal."""
        self.directory.journal.append(c.to_json(self.tables) for c in state.tried)

    def save(self, state: State, rng: random.Random) -> None:
        """Write a checkpoint, so that a later process can resume here."""
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
        """Write the hall of fame and the history for people."""
        self.directory.write_json(HALL, hall)
        self.directory.write_csv(HALL_CSV, hall)
        self.directory.write_csv(HISTORY, history)
