"""The cache folder: one file per sketch, named by its address and written atomically.

Layout: `SPACE/ab/ab12....sketch`, and `ab12....failure.json` for an architecture that could not be
sketched. Any number of processes may read and write: files with equal names have equal bytes, and a
file gets its name only when it is complete. A file is accepted only if its digest matches and it
says that it belongs to the address it is stored under. Sketches can be listed and pruned.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from os import SEEK_END
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import spaces
from lpzero import files
from lpzero.errors import EnvelopeError, InputError, LPZeroError
from lpzero.files import read_header
from lpzero.sketches.sketch import (
    MAGIC,
    NUMBER_BYTES,
    SCHEMA,
    Sketch,
    SketchError,
    address_of,
    decode,
    n_numbers,
    space_identity,
)
from spaces.untrusted import LARGEST, UntrustedError, open_regular, read_json, user_path

ENVIRONMENT = "LPZERO_CACHE"
SKETCH, FAILURE = ".sketch", ".failure.json"
logger = logging.getLogger(__name__)
# The state of each sketch's file when this process verified it.
_verified: dict[Path, _State] = {}


class StoreError(LPZeroError, OSError):
    """The cache folder cannot be used."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an architecture has no sketch; `identity` is what the sketch's header would have."""

    reason: str
    identity: Mapping[str, Any] = field(default_factory=dict)


def cache_folder(given: str | os.PathLike[str] | None = None) -> Path:
    """The folder given, else $LPZERO_CACHE, else ~/.cache/lpzero."""
    return user_path(given or os.environ.get(ENVIRONMENT) or "~/.cache/lpzero")


@dataclass(frozen=True)
class Store:
    """The sketches under one folder."""

    folder: Path

    def path(self, space: str, address: str, ending: str = SKETCH) -> Path:
        """The path of the file with that address, whether or not it exists."""
        return self.folder / space / address[:2] / (address + ending)

    def has(self, space: str, address: str) -> bool:
        """Whether there is a file; `load` also verifies it."""
        return self.path(space, address).is_file()

    def size(self, space: str, address: str) -> int:
        """The size of the sketch in bytes, 0 if there is none."""
        return file_size(self.path(space, address))

    def load(self, space: str, address: str, buffer: Buffer | None = None) -> Sketch:
        """The verified sketch; raise SketchError, naming the file, if it is missing or broken.

        A file that this process has verified is not hashed again while it is the same file. A
        sketch that is read into a buffer lasts until the next one is.
        """
        path = self.path(space, address)
        try:
            with open_regular(path, LARGEST, follow_links=False) as file:
                state = _state(file)
                data = file.read() if buffer is None else buffer.read(file, state.size)
                sketch = decode(data, _verified.get(path) == state)
        except FileNotFoundError:
            raise SketchError(f"no sketch {path}: run `lpzero stats` first") from None
        except UntrustedError as error:
            raise SketchError(str(error)) from None
        except SketchError as error:
            raise SketchError(f"{path}: {error}") from None
        _check_address(path, sketch.header, address)
        _verified[path] = state
        return sketch

    def header(self, space: str, address: str) -> dict[str, Any]:
        """The sketch's header; raise SketchError if it is missing, cut short or of another sketch.

        Its numbers are not read, so a changed one is left for `load` to find.
        """
        path = self.path(space, address)
        try:
            with open_regular(path, follow_links=False) as file:
                header = files.read_header(file, MAGIC)
                is_whole = file.tell() + NUMBER_BYTES * n_numbers(header) == file.seek(0, SEEK_END)
        except FileNotFoundError:
            raise SketchError(f"no sketch {path}: run `lpzero stats` first") from None
        except UntrustedError as error:
            raise SketchError(str(error)) from None
        except EnvelopeError as error:
            raise SketchError(f"{path}: {error}") from None
        except (LookupError, TypeError, ValueError, AttributeError):
            raise SketchError(f"{path}: the header cannot be read") from None
        if not is_whole:
            raise SketchError(f"{path}: the file is truncated or corrupt")
        _check_address(path, header, address)
        return header

    def write(self, space: str, address: str, data: bytes) -> None:
        """Write the file and remove the record of an earlier failure."""
        files.write_bytes(self.path(space, address), data)
        self.path(space, address, FAILURE).unlink(missing_ok=True)

    def failure(self, space: str, address: str) -> Failure | None:
        """The recorded failure; None if there is none, or if it is not as it was written."""
        path = self.path(space, address, FAILURE)
        try:
            record = files.read_sealed(path, address)
        except FileNotFoundError:
            return None
        except EnvelopeError as error:
            logger.warning("%s: %s; trying the architecture again", path, error)
            return None
        return Failure(str(record.pop("reason")), record)

    def record_failure(self, space: str, address: str, failure: Failure) -> None:
        """Record why there is no sketch."""
        record = {**failure.identity, "reason": failure.reason}
        files.write_sealed(self.path(space, address, FAILURE), address, record)

    def groups(self, space: str | None = None) -> dict[tuple[str, str], list[Path]]:
        """By space and address: the sketch or failure record, and the files derived from it."""
        groups: dict[tuple[str, str], list[Path]] = {}
        for path in sorted(self.folder.glob(f"{space or '*'}/??/[0-9a-f]*")):
            groups.setdefault((path.parts[-3], path.name.partition(".")[0]), []).append(path)
        return groups

    def sweep(self) -> int:
        """Remove the temporary files of interrupted writers; return their number."""
        return files.sweep(self.folder.glob(f"*/??/.*{files.TEMPORARY}"))


class Buffer:
    """Memory that one file after another is read into: new memory for each costs more than that."""

    def __init__(self) -> None:
        self._memory = bytearray()

    def read(self, file: BinaryIO, size: int) -> memoryview:
        """The file's bytes, `size` of them or fewer, until the next file is read."""
        if len(self._memory) < size:
            self._memory = bytearray(size)  # whoever still holds the last file keeps its memory
        view = memoryview(self._memory)[:size]
        n = 0
        while n < size:
            got = file.readinto(view[n:])  # type: ignore[attr-defined]
            if not got:
                break
            n += got
        return view[:n]


class _State(NamedTuple):
    """What changes when a file is replaced or written to."""

    device: int
    inode: int
    size: int
    modified: int
    changed: int


def _state(file: BinaryIO) -> _State:
    about = os.fstat(file.fileno())
    times = about.st_mtime_ns, about.st_ctime_ns
    return _State(about.st_dev, about.st_ino, about.st_size, *times)


def _check_address(path: Path, header: Mapping[str, Any], address: str) -> None:
    if address_of(header) != address:
        raise SketchError(f"{path}: it is the sketch of another architecture or other options")


def file_size(path: Path) -> int:
    """The file's size in bytes; 0 if another process has just removed it."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


# Arguments of `prune` besides the names of spaces.
STALE, ALL = "stale", "all"


def listing(store: Store) -> list[dict[str, Any]]:
    """A row per space and options: how many sketches and failures, and how many bytes.

    The bytes include the files derived from the sketches, such as branch tables.
    """
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for (space, _), paths in store.groups().items():
        header = _header(paths)
        what = {"space": space, "readable": header is not None}
        what |= dict((header or {}).get("options", {}))
        empty = {**what, "sketches": 0, "failures": 0, "bytes": 0}
        row = rows.setdefault(tuple(what.items()), empty)
        row["sketches"] += sum(path.name.endswith(SKETCH) for path in paths)
        row["failures"] += sum(path.name.endswith(FAILURE) for path in paths)
        row["bytes"] += sum(map(file_size, paths))
    return list(rows.values())


def prune(store: Store, what: str) -> tuple[int, int]:
    """Remove the sketches of a space, "all" of them, or the "stale" ones; (files, bytes) removed.

    Stale files are unreadable, have another format, or belong to a space that no longer exists or
    now builds other models. Files derived from a sketch are removed with it.
    """
    if what not in (STALE, ALL, *spaces.names(), *(space for space, _ in store.groups())):
        names = ", ".join([STALE, ALL, *spaces.names()])
        raise InputError(f"cannot prune {what!r}: use one of {names}")
    n_files = store.sweep()
    n_bytes = 0
    for paths in store.groups(None if what in (STALE, ALL) else what).values():
        if what == STALE and not _is_stale(_header(paths)):
            continue
        for path in paths:
            n_bytes += file_size(path)
            path.unlink(missing_ok=True)
            n_files += 1
    return n_files, n_bytes


def _header(paths: Sequence[Path]) -> dict[str, Any] | None:
    """The sketch's header or the failure's record; None if neither can be read."""
    for path in paths:
        header = None
        with suppress(OSError, ValueError, EnvelopeError):
            if path.name.endswith(SKETCH):
                with open_regular(path, follow_links=False) as file:
                    header = read_header(file, MAGIC)
            elif path.name.endswith(FAILURE):
                header = read_json(path, files.LARGEST_JSON, follow_links=False)
        if isinstance(header, dict) and _is_listable(header):
            return header
    return None


def _is_listable(header: Mapping[str, Any]) -> bool:
    """Whether the space and the options of a file, which may be damaged, can be told apart."""
    space, chosen = header.get("space", {}), header.get("options", {})
    plain = (str, int, float, type(None))
    return (
        isinstance(space, dict)
        and isinstance(chosen, dict)
        and all(isinstance(value, plain) for value in (space.get("name"), *chosen.values()))
    )


def _is_stale(header: Mapping[str, Any] | None) -> bool:
    if header is None or header.get("schema") != SCHEMA:
        return True
    space = header.get("space", {})
    if space.get("name") not in spaces.names():
        return True
    current = space_identity(spaces.get(space["name"]))
    return any(space.get(key) != current.get(key) for key in ("kind", "version", "text"))
