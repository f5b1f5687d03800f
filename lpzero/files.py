"""Atomic file writes, sealed envelopes and seals: the only code in the project that writes files.

A file is written under a temporary name in the same folder, flushed to disk and renamed, so that a
reader finds either the old file or the new one, also after a power failure. Journals are the
exception: they are appended to, through `AppendFile`. A run's directory may come from a stranger:
what is changed in place there must have one name only (`open_in_place`), and folders inside it may
not be links (`subfolder`), so nothing of the user's is overwritten.

Arrays are stored in sealed envelopes, `magic (8) | sha256 of the rest (32) | header length (8) |
header (JSON) | numbers`: the digest detects any changed or missing byte, and reading one never
executes anything.

A seal is a digest stored inside a JSON file that binds its content to the place where it belongs:
the SHA-256 of a place (an address in the cache, or a run and a file's name) and of the content. A
changed digit, a file of another run or a file swapped with its neighbour does not match it. Seals
detect damage and mix-ups; they hold no secret, so they are no defence against someone who computes
them again.
"""

from __future__ import annotations

import csv
import errno
import hashlib
import io
import json
import os
import secrets
import socket
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lpzero.errors import EnvelopeError, InputError, UnsealedError, WriteError
from spaces.untrusted import UntrustedError, parse_json, read_json, read_regular

TEMPORARY = ".tmp"
SEAL = "seal"
SCRATCH_ALIGNMENT = 64
LARGEST_JSON = 64 << 20  # bytes of a file of a run or of the cache
_LARGEST_HEADER = 64 << 20
# A temporary file that another machine may still be writing is left alone for this long.
_STALE_SECONDS = 24 * 3600
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# Errors of file systems on which folders cannot be flushed, and of folders that cannot be listed.
_NO_FOLDER_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM)
_DIGEST_END, _LENGTH_END = 40, 48
_RISKY = ("=", "+", "-", "@", "\t", "\r", "'")


def write_bytes(path: Path, data: bytes, is_flushed: bool = True) -> None:
    """Write the file atomically, creating its folders; raise WriteError if that fails.

    A sealed file that can be computed again need not be flushed to disk: what a power failure may
    leave of it is recognised.
    """
    writer = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
    temporary = path.with_name(f".{path.name}.{writer}{TEMPORARY}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(temporary, "xb") as file:
            file.write(data)
            if is_flushed:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
        if is_flushed:
            sync_folder(path.parent)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise write_error(path, error) from error


def sync_folder(folder: Path) -> None:
    """Flush the names in the folder to the disk, where the file system can."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise


def subfolder(folder: Path, *names: str) -> Path:
    """The folder of these names inside a run's directory, created if it is missing.

    Raise InputError if one of the names is a link.
    """
    path = folder
    for name in names:
        path /= name
        if path.is_symlink():
            raise InputError(f"{path} is a link, and nothing is written through links: remove it")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise write_error(path, error) from error
    return path


def open_in_place(path: Path, flags: int = 0) -> int:
    """A handle to read and change the file, which is created if it is missing.

    Raise InputError unless it is a regular file without another name: through a link, symbolic or
    hard, another file of the user's would be changed.
    """
    flags |= os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        handle = os.open(path, flags, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _not_ours(path, "is a link") from None
        raise
    about = os.fstat(handle)
    if stat.S_ISREG(about.st_mode) and about.st_nlink <= 1:
        return handle
    os.close(handle)
    is_file = stat.S_ISREG(about.st_mode)
    raise _not_ours(path, "has another name (a hard link)" if is_file else "is not a regular file")


def _not_ours(path: Path, what: str) -> InputError:
    return InputError(f"{path} {what}, so it is not written to: remove it or choose another place")


def write_scratch(path: Path, arrays: Sequence[Any]) -> None:
    """Write the bytes of arrays one after another, aligned; the file does not outlive its user.

    It is not flushed to disk. `SCRATCH_ALIGNMENT` is what each array's place is a multiple of.
    """
    try:
        with open(path, "xb") as file:
            for array in arrays:
                file.write(bytes(-file.tell() % SCRATCH_ALIGNMENT))
                file.write(array)
    except OSError as error:
        raise write_error(path, error) from error


def write_text(path: Path, text: str) -> None:
    """Write the text as UTF-8 without translating line ends."""
    write_bytes(path, text.encode())


def write_json(path: Path, value: Any, indent: int | None = 1) -> None:
    """Write the value as JSON; raise ValueError if a number is not finite."""
    text = json.dumps(value, indent=indent, allow_nan=False, ensure_ascii=False)
    write_text(path, text + "\n")


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the rows as CSV with a header; texts are guarded."""
    write_text(path, to_csv([{name: guarded(cell) for name, cell in row.items()} for row in rows]))


def guarded(cell: Any) -> Any:
    """The cell of a CSV file; a text that a spreadsheet would execute begins with an apostrophe."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_RISKY) else cell


def unguarded(text: str) -> str:
    """The text of a guarded cell."""
    return text.removeprefix("'")


def to_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as CSV with a header; the first row names the columns."""
    text = io.StringIO()
    if rows:
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return text.getvalue()


def move(source: Path, target: Path) -> None:
    """Rename a file or folder within one file system."""
    try:
        os.replace(source, target)
    except OSError as error:
        raise write_error(target, error) from error


def write_error(path: Path, error: OSError) -> WriteError:
    """The error to raise when writing to the path failed."""
    remedy = "; make room and run the same command again" if error.errno in _FULL else ""
    return WriteError(f"cannot write {path}: {error.strerror or error}{remedy}")


class AppendFile:
    """A file that is only appended to or truncated; `size` is how many bytes it has.

    A failure is a WriteError. Raise InputError when another process has changed the file, too.
    """

    def __init__(self, path: Path) -> None:
        self.path, self._is_named = path, False
        with self._writing():
            self._handle = open_in_place(path, os.O_APPEND)
            self.size = os.fstat(self._handle).st_size

    def append(self, data: bytes) -> None:
        """Append the bytes and hand them to the operating system."""
        self._check_unchanged()
        rest = memoryview(data)
        with self._writing():
            while rest:
                n_bytes = os.write(self._handle, rest)
                self.size += n_bytes
                rest = rest[n_bytes:]
        self._check_unchanged()

    def read(self, start: int, stop: int) -> bytes:
        """The bytes from start to stop."""
        pieces = []
        with self._writing():
            while start < stop and (piece := os.pread(self._handle, stop - start, start)):
                pieces.append(piece)
                start += len(piece)
        if start < stop:
            raise self._changed()
        return b"".join(pieces)

    def truncate(self, size: int) -> None:
        """Keep only the first `size` bytes."""
        self._check_unchanged()
        with self._writing():
            os.ftruncate(self._handle, size)
        self.size = size

    def sync(self) -> None:
        """Flush everything to the disk."""
        self._check_unchanged()
        with self._writing():
            os.fsync(self._handle)
            if not self._is_named:  # a new file's name is flushed on its own
                sync_folder(self.path.parent)
                self._is_named = True

    def close(self) -> None:
        """Close the file."""
        with self._writing():
            os.close(self._handle)

    def _check_unchanged(self) -> None:
        """Raise InputError if the file does not end where this process wrote last."""
        with self._writing():
            size = os.fstat(self._handle).st_size
        if size != self.size:
            raise self._changed()

    def _changed(self) -> InputError:
        return InputError(
            f"another process has changed {self.path}: let one process at a time work there, and"
            " run the command again when the others have ended"
        )

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise write_error(self.path, error) from error


def is_temporary(path: Path) -> bool:
    """Whether this is the temporary name of a file being written."""
    return path.name.startswith(".") and path.name.endswith(TEMPORARY)


def is_abandoned(path: Path) -> bool:
    """Whether the process named in a temporary file's name no longer runs."""
    host, _, process = path.name[: -len(TEMPORARY)].rpartition("-")[0].rpartition("-")
    if os.name == "posix" and process.isdigit() and host.endswith(f".{socket.gethostname()}"):
        return not _is_running(int(process))
    try:
        return time.time() - path.stat().st_mtime > _STALE_SECONDS
    except FileNotFoundError:
        return False


def sweep(paths: Iterable[Path]) -> int:
    """Remove the temporary files of writers that no longer run; return their number."""
    abandoned = [path for path in paths if is_temporary(path) and is_abandoned(path)]
    for path in abandoned:
        path.unlink(missing_ok=True)
    return len(abandoned)


def _is_running(process: int) -> bool:
    """Whether the process exists and is not a zombie."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    try:
        about = read_regular(Path(f"/proc/{process}/stat")).decode(errors="replace")
        state = about.rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return True
    return state != "Z"


class Envelope(NamedTuple):
    """The header of a sealed file, and the offset of its numbers."""

    header: dict[str, Any]
    start: int


def canonical_json(value: Any) -> bytes:
    """The value as JSON in a canonical form: equal values give equal bytes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def seal(magic: bytes, header: bytes, numbers: bytes) -> bytes:
    """The bytes of a sealed file; the numbers begin at a multiple of 64."""
    header += b" " * (-(_LENGTH_END + len(header)) % 64)
    rest = len(header).to_bytes(8, "little") + header + numbers
    return magic + hashlib.sha256(rest).digest() + rest


def unseal(data: bytes | memoryview, magic: bytes, is_verified: bool = False) -> Envelope:
    """The verified header and the offset of the numbers; raise EnvelopeError if invalid.

    The digest of bytes that were verified before is not computed again.
    """
    view = memoryview(data)
    if len(data) < _LENGTH_END or view[:8] != magic:
        raise EnvelopeError("not a file of this kind and version")
    if not is_verified and hashlib.sha256(view[_DIGEST_END:]).digest() != view[8:_DIGEST_END]:
        raise EnvelopeError("the digest does not match: the file is truncated or corrupt")
    start = _LENGTH_END + int.from_bytes(view[_DIGEST_END:_LENGTH_END], "little")
    return Envelope(_header(bytes(view[_LENGTH_END:start])), start)


def read_header(file: BinaryIO, magic: bytes) -> dict[str, Any]:
    """The header alone, not verified, for listings; raise EnvelopeError if unreadable."""
    start = file.read(_LENGTH_END)
    if len(start) < _LENGTH_END or start[:8] != magic:
        raise EnvelopeError("not a file of this kind and version")
    length = int.from_bytes(start[_DIGEST_END:], "little")
    return _header(file.read(min(length, _LARGEST_HEADER)))


def _header(data: bytes) -> dict[str, Any]:
    try:
        value = parse_json(data, "the header")
    except UntrustedError as error:
        raise EnvelopeError(str(error)) from None
    if not isinstance(value, dict):
        raise EnvelopeError("the header is not a JSON object")
    return value


def sealed(place: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """The object with its seal as the last field."""
    as_read = json.loads(json.dumps(content))  # keys are texts, tuples are lists
    return {**content, SEAL: _digest(place, canonical_json(as_read))}


def unsealed(place: str, sealed: Any) -> dict[str, Any]:
    """The object without its seal; raise EnvelopeError unless the seal matches."""
    if not isinstance(sealed, dict):
        raise EnvelopeError("it is not a JSON object")
    if SEAL not in sealed:
        raise UnsealedError("it has no seal")
    content = {name: value for name, value in sealed.items() if name != SEAL}
    if sealed[SEAL] != _digest(place, canonical_json(content)):
        raise EnvelopeError("its seal does not match: it was changed, or belongs elsewhere")
    return content


def write_sealed(
    path: Path, place: str, content: Mapping[str, Any], indent: int | None = 1
) -> None:
    """Write the object as sealed JSON; raise ValueError if a number is not finite."""
    write_json(path, sealed(place, content), indent)


def read_sealed(path: Path, place: str) -> dict[str, Any]:
    """The verified object; raise FileNotFoundError, or EnvelopeError if it is not as written."""
    try:
        value = read_json(path, LARGEST_JSON, follow_links=False)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise EnvelopeError(f"it {error.strerror}") from None
    return unsealed(place, value)


def array_seal(place: str, arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.uint8]:
    """The seal of named arrays (32,): of their names, types, shapes and bytes."""
    digest = hashlib.sha256(f"{place}\n".encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return np.frombuffer(digest.digest(), dtype=np.uint8)


def _digest(place: str, content: bytes) -> str:
    return hashlib.sha256(f"{place}\n".encode() + content).hexdigest()
