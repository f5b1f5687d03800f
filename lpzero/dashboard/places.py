"""The runs below a folder, found without following a link.

A request names a run by a digest of its path, never by the path: only what was found here can be
asked for. A directory whose files are links, pipes or far too large is listed with the reason and
is not read.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lpzero.runs import layout

_MOST_FOLDERS = 20_000  # looked into
_DEEPEST = 12
_PARTS = "runs"  # the folder of a comparison with its searches; no other run has runs in it
_MEGABYTE = 1 << 20
# The largest file of each name that is read. Journals are read in pieces and may be of any size.
LARGEST = {
    layout.CONFIG: 4 * _MEGABYTE,
    layout.RESULT: 64 * _MEGABYTE,
    layout.SCORES: 64 * _MEGABYTE,
    layout.HALL: 16 * _MEGABYTE,
    layout.HISTORY: 64 * _MEGABYTE,
    layout.LOCK: 4096,
}
_FILES = (*LARGEST, layout.JOURNAL, layout.TABLE)


@dataclass(frozen=True, slots=True)
class Place:
    """A run's directory: its address in requests, its path and its name for people."""

    id: str
    folder: Path
    name: str


@dataclass(frozen=True, slots=True)
class Found:
    """The places of runs, by id; `is_cut` if the folder was too large to look into all of it."""

    places: dict[str, Place]
    is_cut: bool


def find_runs(root: Path) -> Found:
    """Every run's directory below the root, or the root itself; links are not followed."""
    places: dict[str, Place] = {}
    waiting: list[tuple[Path, int]] = [(root, 0)]
    looked = 0
    while waiting:
        folder, depth = waiting.pop()
        looked += 1
        if looked > _MOST_FOLDERS:
            return Found(places, True)
        is_run, inner = _look(folder)
        if is_run:
            place = _place(root, folder)
            places[place.id] = place
            inner = [path for path in inner if path.name == _PARTS]
        if depth < _DEEPEST:
            waiting += [(path, depth + 1) for path in inner]
    return Found(dict(sorted(places.items(), key=lambda item: item[1].name)), False)


def _look(folder: Path) -> tuple[bool, list[Path]]:
    """Whether the folder holds a run, and the folders in it."""
    inner = []
    is_run = False
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name == layout.CONFIG:
                    is_run = not entry.is_dir(follow_symlinks=False)
                elif entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
                    inner.append(Path(entry.path))
    except OSError:
        return False, []  # removed, or not ours to read
    return is_run, sorted(inner, reverse=True)


def _place(root: Path, folder: Path) -> Place:
    below = os.fsencode(folder.relative_to(root))
    name = "." if folder == root else str(folder.relative_to(root))
    return Place(hashlib.sha256(below).hexdigest()[:16], folder, shown(name))


def shown(text: str, longest: int = 300) -> str:
    """The text on one line, with an escape for every character that cannot be printed."""
    safe = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    safe = safe.encode("utf-8", "backslashreplace").decode()
    return safe if len(safe) <= longest else safe[: longest - 1] + "…"


def why_unreadable(folder: Path) -> str | None:
    """Why the directory is not read; None if each of its files is a regular one of usual size."""
    for name in _FILES:
        try:
            about = os.lstat(folder / name)
        except FileNotFoundError:
            continue
        except OSError as error:
            return f"{name}: {error.strerror}"
        if stat.S_ISLNK(about.st_mode):
            return f"{name} is a symbolic link, which is not followed"
        if not stat.S_ISREG(about.st_mode):
            return f"{name} is not a regular file"
        if about.st_size > LARGEST.get(name, about.st_size):
            return f"{name} has {about.st_size:,} bytes, more than is read"
    if (folder / layout.SHARDS).is_symlink():
        return f"{layout.SHARDS} is a symbolic link, which is not followed"
    return None


def size_of(folder: Path) -> int:
    """The bytes of the files below the folder as they are listed, at most some thousand files."""
    return sum(size for size, _ in zip(_sizes(folder), range(_MOST_FOLDERS), strict=False))


def _sizes(folder: Path) -> Iterator[int]:
    waiting = [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(Path(entry.path))
                    elif entry.is_file(follow_symlinks=False):
                        yield entry.stat(follow_symlinks=False).st_size
        except OSError:
            continue
