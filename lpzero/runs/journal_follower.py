"""Reads a journal that may still grow: what was read once is not read again.

Only whole lines whose seal continues the seal before them are given. A run that was killed leaves a
torn line, which the resumed run replaces; a journal that was cut or replaced is read from its
beginning again. Nothing is written or locked, and links are not followed.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any, NamedTuple

from lpzero.runs.journal import Check, first_seal, next_lines

PIECE = 4 << 20  # bytes read at a time
_LONGEST = 1 << 20  # bytes of a line; a longer one is not of a run
_WITNESS = 64  # bytes; they hold the last seal, which stands for everything before it


class Piece(NamedTuple):
    """New records; `is_first` if they are the first ones of a journal, or of one that was cut."""

    records: list[dict[str, Any]]
    is_first: bool


class JournalFollower:
    """The place up to which a journal was read; `place` names the run that it belongs to.

    `offset` of its `size` bytes were read, `lines` are the records so far. `is_behind` if there is
    more to read now; `remark` says why the rest is not read, None while all is well.
    """

    def __init__(self, path: Path, fits: Check, place: str) -> None:
        self.path, self._fits, self._first = path, fits, first_seal(place)
        self._restart()

    def _restart(self) -> None:
        self.offset = self.size = self.lines = 0
        self._seal, self._witness = self._first, b""
        self._is_started = self.is_behind = False
        self.remark: str | None = None

    def read(self, limit: int = PIECE) -> Piece:
        """The records of the next `limit` bytes."""
        self.is_behind = False
        try:
            handle = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            self._restart()
            return Piece([], True)
        try:
            about = os.fstat(handle)
            if not stat.S_ISREG(about.st_mode):
                self._restart()
                self.remark = f"{self.path.name} is not a regular file"
                return Piece([], True)
            return self._read(handle, about.st_size, limit)
        finally:
            os.close(handle)

    def _read(self, handle: int, size: int, limit: int) -> Piece:
        start = self.offset - len(self._witness)
        data = os.pread(handle, len(self._witness) + limit, start)
        if not data.startswith(self._witness):  # cut, or another journal
            self._restart()
            data = os.pread(handle, limit, 0)
        data = data[len(self._witness) :]
        self.size = size
        found = next_lines(data, self._seal, self.lines, self._fits)
        is_first, self._is_started = not self._is_started, True
        self.lines += len(found.records)
        self.offset += found.n_bytes
        self._seal = found.seal
        whole = self._witness + data[: found.n_bytes]
        self._witness = whole[-_WITNESS:]
        rest = data[found.n_bytes :]
        self.remark = self._on_rest(rest)
        self.is_behind = self.remark is None and self.offset + len(rest) < size
        return Piece(found.records, is_first)

    def _on_rest(self, rest: bytes) -> str | None:
        """What is said about the bytes after the last whole line of those read."""
        end = rest.find(b"\n")
        if end < 0 and len(rest) < _LONGEST:
            return None  # a line that is being written, or the start of the next piece
        if end < 0:
            return f"line {self.lines + 1} of {self.path.name} is longer than any of a run"
        return f"line {self.lines + 1} of {self.path.name} was changed or is not of this run"
