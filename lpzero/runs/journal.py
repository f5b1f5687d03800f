"""A journal: an append-only file of JSON lines that a resumed run can replay.

The last field of a line is its seal, a digest of the line and of the seal before it; the first line
continues the run's own digest. Reading stops at the first line that is torn, was changed or belongs
to another run; the file is truncated there, and the run writes the missing lines again. A resumed
run starts at some line and produces the following lines again: they are compared with the file and
not written twice, so that a finished journal has the same bytes however often the run was
interrupted.

`JournalFollower` reads a journal that may still grow: what was read once is not read again, and
only whole lines whose seal continues the seal before them are given. A run that was killed leaves a
torn line, which the resumed run replaces; a journal that was cut or replaced is read from its
beginning again. Nothing is written or locked, and links are not followed.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import accumulate, chain
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from lpzero.errors import RunError
from lpzero.files import SEAL, AppendFile
from spaces.untrusted import UntrustedError, open_regular, pieces_of

_MARK, _END = f',"{SEAL}":"'.encode(), b'"}\n'
_DIGITS = 32  # hexadecimal, of a SHA-256
PIECE = 4 << 20  # bytes read at a time
_LONGEST = 1 << 20  # bytes of a line; a longer one is not of a run
_WITNESS = 64  # bytes; they hold the last seal, which stands for everything before it
_YOUNG_OBJECTS = 100_000  # Python's own is 700
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_TAIL = len(_MARK) + _DIGITS + len(_END)
# Whether a record is valid at that line number.
Check = Callable[[dict[str, Any], int], bool]


class Journal:
    """An open journal; `place` names the run that it belongs to.

    `position` is the number of the next line; `remark` describes what was cut off on opening. Lines
    stay in the file: in memory is where each of them ends, and the seal of the last.
    """

    def __init__(self, path: Path, fits: Check, place: str = "") -> None:
        self.path, self._first = path, first_seal(place)
        self._ends, self._last = array("q"), self._first
        stored = _StoredJournal(path, self._first, fits)
        for new in stored:
            self._ends.extend(accumulate(map(len, new.lines), initial=self._end(len(self))))
            del self._ends[-len(new.lines) - 1]  # the place where the lines begin
            self._last = new.seal
        self.remark = stored.remark(len(self))
        self.position = 0
        self._file = AppendFile(path)
        try:
            if self._file.size != self._end(len(self)) + stored.n_bytes:
                raise RunError(f"another process is writing {path}: wait until it has ended")
            if self.remark:
                self.cut(len(self))
        except BaseException:
            self._file.close()
            raise

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
        return len(self._ends)

    def records(self, start: int = 0, stop: int | None = None) -> list[dict[str, Any]]:
        """The records of these lines."""
        lines = self._lines(*slice(start, stop).indices(len(self))[:2])
        return _records([line[:-_TAIL] for line in lines])

    def seal(self, line: int) -> str:
        """The seal of the journal's first `line` lines."""
        if line == len(self):
            return self._last.decode()
        return (seal_in(self._lines(line - 1, line)[0]) if line else self._first).decode()

    def _end(self, line: int) -> int:
        """How many bytes the first `line` lines take."""
        return self._ends[line - 1] if line else 0

    def _lines(self, start: int, stop: int) -> list[bytes]:
        """These lines, from the file."""
        data = self._file.read(self._end(start), self._end(stop))
        ends = [end - self._end(start) for end in self._ends[start:stop]]
        return [
            data[start_of_line:end] for start_of_line, end in zip([0, *ends], ends, strict=False)
        ]

    def go_to(self, line: int) -> None:
        """Move to this line."""
        self.position = line

    def append(self, records: Iterable[dict[str, Any]]) -> None:
        """Write the records, skipping those that the journal already has at their line."""
        new: list[bytes] = []
        seal = self.seal(self.position).encode()
        for record in records:
            body = _body(record)
            line = body + _tail(seal, body)
            seal = seal_in(line)
            if not new and self._has(self.position, line):
                self.position += 1
                continue
            new.append(line)
        if new:
            self._write(new)

    def _has(self, number: int, line: bytes) -> bool:
        """Whether the journal has this line there."""
        return number < len(self) and self._lines(number, number + 1) == [line]

    def sync(self) -> None:
        """Flush everything to the disk."""
        self._file.sync()

    def _write(self, lines: list[bytes]) -> None:
        if self.position < len(self):  # written by another version of a library
            self.cut(self.position)
        self._file.append(b"".join(lines))
        for line in lines:
            self._ends.append(self._end(len(self)) + len(line))
        self._last = seal_in(lines[-1])
        self.position = len(self)

    def cut(self, number: int) -> None:
        """Keep only the first `number` lines."""
        last = self.seal(number).encode()
        del self._ends[number:]
        self._file.truncate(self._end(number))
        self._last = last


class _StoredJournal:
    """Iterates over the whole lines of a journal in a file, a piece of it at a time.

    Afterwards `n_bytes` and `n_ends` (of lines) are those of what follows the whole lines, `start`
    and `end` are its first and last bytes, and `seal` is that of the last whole line.
    """

    def __init__(self, path: Path, first: bytes, fits: Check) -> None:
        self.path, self.seal, self._fits = path, first, fits
        self.start = self.end = b""
        self.n_bytes, self.n_ends, self.has_zeros = 0, 0, False

    def __iter__(self) -> Iterator[NextLines]:
        number, rest, pieces = 0, b"", self._pieces()
        for piece in pieces:
            rest += piece
            new = next_lines(rest, self.seal, number, self._fits)
            number += len(new.lines)
            self.seal, rest = new.seal, rest[new.n_bytes :]
            if new.lines:
                yield new
            if b"\n" in rest or len(rest) > _LONGEST:
                break
        self.start = rest
        for piece in chain([rest], pieces):
            self.n_bytes += len(piece)
            self.n_ends += piece.count(b"\n")
            self.end = piece[-1:]
            self.has_zeros = self.has_zeros or b"\0" in piece

    def _pieces(self) -> Iterator[bytes]:
        """The bytes of the file, none if there is no file; raise RunError if it is not regular."""
        try:
            yield from pieces_of(self.path, follow_links=False)
        except FileNotFoundError:
            return
        except UntrustedError as error:
            raise RunError(f"{error}: remove it, or choose another directory") from None

    def remark(self, n_whole: int) -> str | None:
        """What is said about the bytes after the whole lines; None if there are none."""
        if not self.n_bytes:
            return None
        if not self.n_ends:
            return f"removed {self.n_bytes} bytes of a torn line from {self.path}"
        n_lines = self.n_ends + (self.end != b"\n")
        return (
            f"{self.path}: line {n_whole + 1} was changed or is not of this run: it and the"
            f" {n_lines - 1} lines after it were cut off and are computed again"
        )


class JournalText(NamedTuple):
    """The records of a journal; `torn` is how many bytes of a torn line follow them."""

    records: list[dict[str, Any]]
    torn: int


def read_journal(path: Path, fits: Check, place: str = "") -> JournalText:
    """The journal's content, without opening it for writing.

    A killed run leaves at most one line that is torn. Raise RunError for anything else that it
    would not have written: a changed line before the last, or a sealed line with another content.
    """
    stored = _StoredJournal(path, first_seal(place), fits)
    with rare_collections():
        records = [record for new in stored for record in new.records]
    line, is_torn = stored.start, stored.n_ends == 0 or stored.has_zeros  # by a power failure
    is_last = stored.n_ends == 1 and stored.end == b"\n"
    is_sealed = is_last and line.endswith(_tail(stored.seal, line[:-_TAIL]))
    if not is_torn and (is_sealed or not is_last):
        raise RunError(
            f"line {len(records) + 1} of {path} was changed or is not of this run: restore"
            " the file, or resume the run, which computes the rest again"
        )
    return JournalText(records, stored.n_bytes)


@contextmanager
def rare_collections() -> Iterator[None]:
    """A context in which cyclic garbage is looked for less often.

    Campaigns and journals keep every record and make next to no cycles, so looking for them takes
    longer the more records there are (experiments/benchmarks).
    """
    usual = gc.get_threshold()
    gc.set_threshold(max(usual[0], _YOUNG_OBJECTS) if usual[0] else 0, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)


class NextLines(NamedTuple):
    """Records that continue a journal, the lines that hold them, and the seal of the last."""

    records: list[dict[str, Any]]
    lines: list[bytes]
    seal: bytes

    @property
    def n_bytes(self) -> int:
        """How many bytes the lines take."""
        return sum(map(len, self.lines))


def next_lines(data: bytes, before: bytes, number: int, fits: Check) -> NextLines:
    """The records at the start of `data`, of which the first has that line number.

    `before` is the seal of the line before it. The records end before the first line that is torn,
    was changed or is out of order.
    """
    lines: list[bytes] = []
    bodies: list[bytes] = []
    seal = before
    for line in data.splitlines(keepends=True):
        body = line[:-_TAIL]
        seal = _seal(seal, body)
        if line[-_TAIL:] != _MARK + seal + _END:
            break
        lines.append(line)
        bodies.append(body)
    with rare_collections():
        records = _records(bodies)
    n_fitting = 0
    with suppress(ValueError, TypeError, LookupError, AttributeError):
        for record in records:
            if not (isinstance(record, dict) and fits(record, number + n_fitting)):
                break
            n_fitting += 1
    del records[n_fitting:]
    whole = lines[:n_fitting]
    return NextLines(records, whole, seal_in(whole[-1]) if whole else before)


def _records(bodies: list[bytes]) -> list[Any]:
    """The values of lines without their seals, up to the first that is not JSON.

    Parsing all of them at once takes half the time of parsing each.
    """
    together = b"[" + b"},".join(bodies) + b"}]" if bodies else b"[]"
    with suppress(ValueError, RecursionError):
        values = json.loads(together.decode())
        if len(values) == len(bodies):
            return list(values)
    records = []
    with suppress(ValueError, TypeError, RecursionError):
        for body in bodies:
            records.append(dict(json.loads(body + b"}")))
    return records


def first_seal(place: str) -> bytes:
    """What the seal of the first line continues."""
    return _seal(b"", place.encode())


def seal_in(line: bytes) -> bytes:
    """The seal of a line that has been verified."""
    return line[-len(_END) - _DIGITS : -len(_END)]


def _tail(before: bytes, body: bytes) -> bytes:
    """The end of a line: its seal covers the seal of the line before it."""
    return _MARK + _seal(before, body) + _END


def _seal(before: bytes, body: bytes) -> bytes:
    return hashlib.sha256(before + body).hexdigest()[:_DIGITS].encode()


def _body(record: dict[str, Any]) -> bytes:
    """The record as JSON without its closing brace."""
    return _ENCODER.encode(record).encode()[:-1]


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
            with open_regular(self.path, follow_links=False) as file:
                handle = file.fileno()
                return self._read(handle, os.fstat(handle).st_size, limit)
        except UntrustedError as error:
            self._restart()
            self.remark = f"{self.path.name} {error.strerror}"
        except OSError:
            self._restart()
        return Piece([], True)

    def _read(self, handle: int, size: int, limit: int) -> Piece:
        start = self.offset - len(self._witness)
        data = os.pread(handle, len(self._witness) + limit, start)
        if not data.startswith(self._witness):  # cut, or another journal
            self._restart()
            data = os.pread(handle, limit, 0)
        data = data[len(self._witness) :]
        self.size = size
        new = next_lines(data, self._seal, self.lines, self._fits)
        is_first, self._is_started = not self._is_started, True
        self.lines += len(new.records)
        self.offset += new.n_bytes
        self._seal = new.seal
        whole = self._witness + data[: new.n_bytes]
        self._witness = whole[-_WITNESS:]
        rest = data[new.n_bytes :]
        self.remark = self._on_rest(rest)
        self.is_behind = self.remark is None and self.offset + len(rest) < size
        return Piece(new.records, is_first)

    def _on_rest(self, rest: bytes) -> str | None:
        """What is said about the bytes after the last whole line of those read."""
        end = rest.find(b"\n")
        if end < 0 and len(rest) < _LONGEST:
            return None  # a line that is being written, or the start of the next piece
        if end < 0:
            return f"line {self.lines + 1} of {self.path.name} is longer than any of a run"
        return f"line {self.lines + 1} of {self.path.name} was changed or is not of this run"
