"""A campaign's directory: who may use it, and files that appear whole or not at all.

config.json          what was asked, of which tables; written once
journal.jsonl        every formula tried, with its lineage; see `journal`
state.json           where to go on: next generation, population, generator, journal length
hall_of_fame.json    the best and the front (also .csv)
history.csv          a line per generation
result.json          the report, test rows included
scores.json          the winner's score and the target of every architecture
timing.json          seconds; the only file that differs between equal runs
lock                 held while a process runs the campaign
"""

from __future__ import annotations

import contextlib
import csv
import fcntl
import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lpzero.runs.errors import RunError, WriteError

CONFIG, JOURNAL, STATE = "config.json", "journal.jsonl", "state.json"
HALL, HALL_CSV, HISTORY = "hall_of_fame.json", "hall_of_fame.csv", "history.csv"
RESULT, TIMING, LOCK = "result.json", "timing.json", "lock"


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """The directory for this process alone.

    The kernel lets go of the lock when its holder dies, however it dies; the process number in
    the file is for the message only.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise RunError(f"{folder} cannot be used: {error.strerror or error}") from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(handle, 32).decode(errors="replace").strip() or "unknown"
            raise RunError(
                f"{folder} is in use by process {holder}: wait for it, or choose another --out"
            ) from None
        with contextlib.suppress(OSError):  # a full disk is reported where it matters
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
        with contextlib.suppress(OSError):
            os.ftruncate(handle, 0)
    finally:
        os.close(handle)


def claim(folder: Path, what: str, config: Any) -> None:
    """Make the directory that of this campaign or search; nothing else may lie in it."""
    mine = {LOCK, CONFIG, f".{CONFIG}.tmp"}
    other = sorted({path.name for path in folder.iterdir()} - mine)
    if other:
        raise RunError(f"{folder} holds {other[0]} and no {what}: choose another --out")
    write_json(folder / CONFIG, config)


def write(path: Path, text: str) -> None:
    """Write beside, flush to disk, rename: a reader finds the old file or the new one."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with open(temporary, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise WriteError(
            f"cannot write {path}: {error.strerror or error}; make room and go on with --resume"
        ) from error


def write_json(path: Path, value: Any, indent: int | None = 1) -> None:
    """Write the value as JSON, whole or not at all."""
    write(path, json.dumps(value, indent=indent, allow_nan=False, ensure_ascii=False) + "\n")


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the rows as CSV, whole or not at all."""
    write(path, to_csv(rows))


def to_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as CSV with a header."""
    text = io.StringIO()
    if rows:
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return text.getvalue()


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in the file; None if there is none or it is broken."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return value if isinstance(value, dict) else None
