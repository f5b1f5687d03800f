"""A file of JSON lines that is only ever appended to, and that a second run may run over.

A torn or broken line ends what can be read; the file is cut there, and its owner makes those
lines again. A resumed run starts at some line and runs over the lines that follow: they are
compared, not written twice, so that a finished file has the same bytes however often the run was
stopped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, TypeVar

from lpzero.runs.errors import WriteError

# Whether a record may stand at that line.
Check = Callable[[dict[str, Any], int], bool]
Self = TypeVar("Self", bound="Lines")


class Lines:
    """An open file; `n_lines` is where it stands, `torn` how many bytes opening it cut."""

    def __init__(self, path: Path, fits: Check) -> None:
        self.path = path
        data = path.read_bytes() if path.exists() else b""
        self._lines = whole_lines(data, fits)
        self.torn = len(data) - sum(map(len, self._lines))
        self.n_lines = 0
        try:
            self._file: BinaryIO = open(path, "ab")  # noqa: SIM115  closed by close()
            if self.torn:
                self._cut(len(self._lines))
        except OSError as error:
            raise _explained(path, error) from error

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._file.close()
        except OSError as failure:  # a buffer that could not be written
            if error is None:
                raise _explained(self.path, failure) from failure

    def __len__(self) -> int:
        return len(self._lines)

    def records(self, start: int = 0, stop: int | None = None) -> list[dict[str, Any]]:
        """What these lines hold."""
        return [json.loads(line) for line in self._lines[start:stop]]

    def go_to(self, line: int) -> None:
        """Stand at this line."""
        self.n_lines = line

    def add(self, records: Iterable[dict[str, Any]]) -> None:
        """Write the records, or pass over them where they stand already."""
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
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise _explained(self.path, error) from error

    def _write(self, lines: list[bytes]) -> None:
        try:
            if self.n_lines < len(self._lines):  # made by another version of a library
                self._cut(self.n_lines)
            self._file.write(b"".join(lines))
            self._file.flush()
        except OSError as error:
            raise _explained(self.path, error) from error
        self._lines.extend(lines)
        self.n_lines = len(self._lines)

    def _cut(self, n_lines: int) -> None:
        del self._lines[n_lines:]
        self._file.flush()
        os.ftruncate(self._file.fileno(), sum(map(len, self._lines)))


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


def _explained(path: Path, error: OSError) -> WriteError:
    return WriteError(
        f"cannot write {path}: {error.strerror or error}; make room and go on with --resume"
    )
