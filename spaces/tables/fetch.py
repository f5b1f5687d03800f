"""Tables from their public repositories at a pinned commit: downloaded, verified, put in place.

A single file comes by its raw address. A folder comes with the archive of the whole commit, of
which only the files the loader reads are unpacked. What is verified is what lands on disk: the
file's SHA-256, or the folder's (see `digests`). It is made beside its place under another name
and renamed, so that a table is there whole or not at all.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from spaces.errors import FetchError, TableError
from spaces.tables.archive import unpack
from spaces.tables.digests import file_digest, tree_digest
from spaces.tables.download import Progress, download
from spaces.tables.registry import DATA_VARIABLE, data_root, locate, source
from spaces.tables.source import Origin, Source

FILES = "https://raw.githubusercontent.com"
ARCHIVES = "https://codeload.github.com"
TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class Fetched:
    """Where a table lies now and whether it had to be downloaded."""

    name: str
    path: Path
    downloaded: bool


def _silent(done: int, total: int | None) -> None:
    """No progress shown."""


def fetch(
    name: str,
    data: str | os.PathLike[str] | None = None,
    *,
    force: bool = False,
    progress: Progress = _silent,
    files: str = FILES,
    archives: str = ARCHIVES,
    timeout: float = TIMEOUT,
) -> Fetched:
    """Put the table into the data root, unless it is there already and whole.

    A table that is there with other content is an error, or replaced with `force`. `files` and
    `archives` are the addresses of the two servers.
    """
    entry = source(name)
    if entry.origin is None:
        return Fetched(name, locate(entry, None), downloaded=False)
    root = data_root(data)
    if root is None:
        raise TableError(f"no place for {name}: set {DATA_VARIABLE} or give --data FOLDER")
    place = root / entry.path
    if place.exists():
        if _digest(place, entry.origin) == entry.origin.digest:
            return Fetched(name, place, downloaded=False)
        if not force:
            raise FetchError(
                f"{place} is not the content of {entry.provenance}: "
                "move it away, or give --force to replace it"
            )
    address = _address(entry.origin, files, archives)
    _obtain(entry, entry.origin, place, address, timeout, progress)
    return Fetched(name, place, downloaded=True)


def _address(origin: Origin, files: str, archives: str) -> str:
    if origin.members is None:
        return f"{files}/{origin.repository}/{origin.commit}/{origin.path}"
    return f"{archives}/{origin.repository}/tar.gz/{origin.commit}"


def _obtain(
    entry: Source, origin: Origin, place: Path, address: str, timeout: float, progress: Progress
) -> None:
    part = place.with_name(f".{place.name}.part")
    resumed = download(address, part, timeout, progress)
    try:
        _install(entry, origin, place, part)
    except FetchError:
        # Kept bytes that do not lead to the right content would fail for ever.
        part.unlink()
        if not resumed:
            raise
        download(address, part, timeout, progress)
        _install(entry, origin, place, part)
    part.unlink(missing_ok=True)


def _install(entry: Source, origin: Origin, place: Path, part: Path) -> None:
    """Turn the downloaded bytes into the verified table at its place."""
    if origin.members is None:
        _verify(entry, origin, part)
        os.replace(part, place)
        return
    with tempfile.TemporaryDirectory(prefix=f".{place.name}.", dir=place.parent) as scratch:
        fresh = Path(scratch) / "new"
        fresh.mkdir()
        unpack(part, origin.path, origin.members, fresh)
        _verify(entry, origin, fresh)
        if place.exists():
            os.replace(place, Path(scratch) / "old")
        os.replace(fresh, place)


def _verify(entry: Source, origin: Origin, path: Path) -> None:
    found = _digest(path, origin)
    if found != origin.digest:
        raise FetchError(
            f"table {entry.name}: wrong checksum, got SHA-256 {found}, expected {origin.digest}; "
            "nothing was installed: fetch it again, and if that does not help report it"
        )


def _digest(path: Path, origin: Origin) -> str:
    if origin.members is None:
        return file_digest(path) if path.is_file() else "(no file)"
    return tree_digest(path, origin.members)
