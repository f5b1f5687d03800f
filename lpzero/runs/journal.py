"""A journal: an append-only file of JSON lines that a resumed run can replay.

Reading stops at the first torn or broken line; the file is truncated there, and the run writes the
missing lines again. A resumed run starts at some line and produces the following lines again: they
are compared with the file and not written twice, so that a finished journal has the same bytes
however often the run was interrupted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from lpzero.files import AppendFile

# Whether a record is valid at that line number.
Check = Callable[[dict[str, Any], int], bool]


class Journal:
    """An open journal.

    `position` is the number of the next line; `torn` is how many bytes were removed on opening.
    """

    def __init__(self, path: Path, fits: Check) -> None:
        self.path = path
        data = path.read_bytes() if path.exists() else b""
        self._lines = whole_lines(data, fits)
        self.torn = len(data) - sum(map(len, self._lines))
        self.position = 0
        self._file = AppendFile(path)
        if self.torn:
            self._truncate(len(self._lines))

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._file.close()
        except OSError:  # do not hide an earlier error
            if error is None:
                raise

    def __len__(self) -> int:
        return len(self._lines)

    def records(self, start: int = 0, stop: int | None = None) -> list[dict[str, Any]]:
        """The records of these lines."""
        return [json.loads(line) for line in self._lines[start:stop]]

    def go_to(self, line: int) -> None:
        """Move to this line."""
        self.position = line

    def append(self, records: Iterable[dict[str, Any]]) -> None:
        """Write the records, skipping those that the journal already has at their line."""
        new: list[bytes] = []
        for record in records:
            line = _encode(record)
            number = self.position + len(new)
            if not new and number < len(self._lines) and self._lines[number] == line:
                self.position += 1
                continue
            new.append(line)
        if new:
            self._write(new)

    def sync(self) -> None:
        """Flush everything to the disk."""
        self._file.sync()

    def _write(self, lines: list[bytes]) -> None:
        if self.position < len(self._lines):  # written by another version of a library
            self._truncate(self.position)
        self._file.append(b"".join(lines))
        self._lines.extend(lines)
        self.position = len(self._lines)

    def _truncate(self, number: int) -> None:
        del self._lines[number:]
        self._file.truncate(sum(map(len, self._lines)))


class JournalText(NamedTuple):
    """The records of a journal, and how many bytes at its end cannot be read."""

    records: list[dict[str, Any]]
    torn: int


def read_journal(path: Path, fits: Check) -> JournalText:
    """The journal's content, without opening it for writing."""
    data = path.read_bytes() if path.exists() else b""
    lines = whole_lines(data, fits)
    return JournalText([json.loads(line) for line in lines], len(data) - sum(map(len, lines)))


def whole_lines(data: bytes, fits: Check) -> list[bytes]:
    """The lines before the first one that is torn, broken or out of order."""
    lines: list[bytes] = []
    for line in data.splitlines(keepends=True):
        if not line.endswith(b"\n") or not _fits(line, len(lines), fits):
            break
        lines.append(line)
    return lines


def _fits(line: bytes, number: int, fits: Check) -> bool:
    try:
        record: Any = json.loads(line)
    except ValueError:
        return False
    return isinstance(record, dict) and fits(record, number)


def _encode(record: dict[str, Any]) -> bytes:
    return json.dumps(record, separators=(",", ":"), allow_nan=False).encode() + b"\n"
