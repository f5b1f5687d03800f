"""Files of a run's directory with other content and a seal that matches it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lpzero.files import SEAL, write_sealed
from lpzero.runs import layout
from lpzero.runs.directory import file_digest
from lpzero.runs.journal import Journal


def content(folder: Path, name: str) -> dict[str, Any]:
    """The object in a file, without its seal."""
    found = json.loads((folder / name).read_text())
    del found[SEAL]
    return dict(found)


def rewrite(folder: Path, name: str, value: Mapping[str, Any]) -> None:
    """Write and seal a file of the run."""
    place = layout.CONFIG if name == layout.CONFIG else layout.place(_hash(folder), name)
    write_sealed(folder / name, place, value)


def rewrite_hall(folder: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the hall of fame, and its digest to the result."""
    (folder / layout.HALL).write_text(json.dumps(rows))
    result = content(folder, layout.RESULT)
    result["digests"][layout.HALL] = file_digest(folder / layout.HALL)
    rewrite(folder, layout.RESULT, result)


def rewrite_journal(folder: Path, records: Sequence[dict[str, Any]]) -> None:
    """Write the journal with these records alone."""
    path = folder / layout.JOURNAL
    path.unlink()
    with Journal(path, lambda *_: True, layout.place(_hash(folder), layout.JOURNAL)) as journal:
        journal.append(records)


def _hash(folder: Path) -> str:
    return str(json.loads((folder / layout.CONFIG).read_text())["hash"])
