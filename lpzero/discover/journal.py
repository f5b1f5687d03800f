"""The journal: one JSON line for everything a campaign tried, only ever appended to."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from lpzero.discover.candidate import Candidate
from lpzero.runs.journal import Lines, whole_lines

_FIELDS = {"id", "generation", "operator", "parents", "formula"}


class Journal(Lines):
    """The lines of a campaign, as candidates."""

    def __init__(self, path: Path, tables: Sequence[str]) -> None:
        super().__init__(path, _is_candidate)
        self.tables = tables

    def candidates(self, start: int = 0, stop: int | None = None) -> list[Candidate]:
        """The candidates of these lines."""
        return [Candidate.from_json(record) for record in self.records(start, stop)]

    def append(self, candidates: Iterable[Candidate]) -> None:
        """Write the candidates, or pass over them where they stand already."""
        self.add(candidate.to_json(self.tables) for candidate in candidates)


def read(path: Path) -> tuple[list[dict[str, Any]], int]:
    """The records of a journal that stays as it is, and how many bytes of it cannot be read."""
    data = path.read_bytes() if path.exists() else b""
    lines = whole_lines(data, _is_candidate)
    return [json.loads(line) for line in lines], len(data) - sum(map(len, lines))


def _is_candidate(record: dict[str, Any], number: int) -> bool:
    return record.get("id") == number and record.keys() >= _FIELDS
