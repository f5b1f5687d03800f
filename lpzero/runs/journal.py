"""A journal: a file of JSON lines that is only appended to, and that a second run may repeat.

A torn or broken line ends what can be read; the file is cut there, and the run writes those lines
again. A resumed run starts at some line and repeats the lines that follow: they are compared, not
written twice, so that a finished journal has the same bytes however often the run was stopped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from lpzero.files import AppendFile

# Whether a record may stand at that line.
Check = Callable[[dict[str, Any], int], bool]


class Journal:
    """An open journal; `n_lines` is where it stands, `torn` how many bytes opening it cut."""

    def __init__(self, path: Path, fits: Check) -> None:
        self.path = path
        data = path.read_bytes() if path.exists() else b""
        self._lines = whole_lines(data, fits)
        self.torn = len(data) - sum(map(len, self._lines))
        self.n_lines = 0
        self._file = AppendFile(path)
        if self.torn:
            self._cut(len(self._lines))

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
        except OSError:  # a buffer that could not be written; an earlier error matters more
            if error is None:
                raise

    def __len__(self) -> int:
        return len(self._lines)

    def records(self, start: int = 0, stop: int | None = None) -> list[dict[str, Any]]:
        """What these lines hold."""
        return [json.loads(line) for line in self._lines[start:stop]]

    def go_to(self, line: int) -> None:
        """Stand at this line."""
        self.n_lines = line

    def append(self, records: Iterable[dict[str, Any]]) -> None:
        """Write the records, or pass over them where the journal holds them already."""
        new: list[bytes] = []
        for record in records:
            line = _encode(record)
            place = self.n_lines + len(new)
            if not new and place < len(self._lines) and self._lines[place] == line:
                self.n_lines += 1
                continue
            new.append(line)
        if new:
            self._write(new)

    def sync(self) -> None:
        """Bring everything to the disk."""
        self._file.sync()

    def _write(self, lines: list[bytes]) -> None:
        if self.n_lines < len(self._lines):  # written by another version of a library
            self._cut(self.n_lines)
        self._file.append(b"".join(lines))
        self._lines.extend(lines)
        self.n_lines = len(self._lines)

    def _cut(self, n_lines: int) -> None:
        del self._lines[n_lines:]
        self._file.cut(sum(map(len, self._lines)))


class JournalText(NamedTuple):
    """The records of a journal that is left as it is, and how many bytes of it cannot be read."""

    records: list[dict[str, Any]]
    torn: int


def read_journal(path: Path, fits: Check) -> JournalText:
    """What the journal holds, without opening it for writing."""
    data = path.read_bytes() if path.exists() else b""
    lines = whole_lines(data, fits)
    return JournalText([json.loads(line) for line in lines], len(data) - sum(map(len, lines)))


def whole_lines(data: bytes, fits: Check) -> list[bytes]:
    """The lines up to the first that is torn, broken or out of order."""
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
