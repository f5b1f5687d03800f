"""Downloads tables from their public repositories at a pinned commit and verifies them.

A single file is downloaded by its raw address. For a folder, the archive of the whole commit is
downloaded and only the files that the loader reads are unpacked (`unpack`), to paths that are built
here, never by tarfile's own extraction. The verified digest is
that of the installed content: the SHA-256 of the file, or of the list of the folder's files. A
table is prepared under a temporary name and renamed, so it is never incomplete. The bytes received
so far are kept in a `.part` file, from which a later call resumes.

urllib rather than pooch: pooch starts every download from zero and checks the bytes of the
archive, which are not stable upstream.
"""

from __future__ import annotations

import http.client
import os
import re
import tarfile
import tempfile
import zlib
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from lpzero.errors import WriteError
from lpzero.files import AppendFile, move, write_bytes
from spaces.errors import FetchError, TableError
from spaces.tables.registry import DATA_VARIABLE, data_root, locate, source
from spaces.tables.source import Further, Origin, Source, table_digest

FILES = "https://raw.githubusercontent.com"
ARCHIVES = "https://codeload.github.com"
TIMEOUT = 60.0
Progress = Callable[[int, "int | None"], None]
_CHUNK = 1 << 16
_LARGEST_DOWNLOAD = 2 << 30


@dataclass(frozen=True, slots=True)
class Fetched:
    """The path of a table, and whether it had to be downloaded."""

    name: str
    path: Path
    downloaded: bool


def _silent(done: int, total: int | None) -> None:
    """Show no progress."""


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
    """Download the table into the data root, unless it is already there and correct.

    The other files that it reads are downloaded too. If a path has other content, raise FetchError
    or, with `force`, replace it. `files` and `archives` are the addresses of the two servers.
    """
    entry = source(name)
    if entry.origin is None:
        return Fetched(name, locate(entry, None), downloaded=False)
    root = data_root(data)
    if root is None:
        raise TableError(f"no folder for {name}: set {DATA_VARIABLE} to one or give --data FOLDER")
    wanted = [Further(entry.path, entry.origin), *entry.further]
    missing = [part for part in wanted if not _is_installed(root / part.path, part.origin, force)]
    for part in missing:
        address = _address(part.origin, files, archives)
        _obtain(entry, part.origin, root / part.path, address, timeout, progress)
    return Fetched(name, root / entry.path, downloaded=bool(missing))


def _is_installed(place: Path, origin: Origin, force: bool) -> bool:
    """Whether the path has the origin's content; other content is an error unless `force`."""
    if not place.exists():
        return False
    if table_digest(place, origin.members) == origin.digest:
        return True
    if not force:
        raise FetchError(
            f"{place} differs from the content of {origin.provenance}: "
            "move it away, or give --force to replace it"
        )
    return False


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
        # Resuming from wrong bytes would fail every time.
        part.unlink()
        if not resumed:
            raise
        download(address, part, timeout, progress)
        _install(entry, origin, place, part)
    part.unlink(missing_ok=True)


def _install(entry: Source, origin: Origin, place: Path, part: Path) -> None:
    """Verify the downloaded bytes and move the table to its path."""
    if origin.members is None:
        _verify(entry, origin, part)
        move(part, place)
        return
    with tempfile.TemporaryDirectory(prefix=f".{place.name}.", dir=place.parent) as scratch:
        fresh = Path(scratch) / "new"
        fresh.mkdir()
        unpack(part, origin.path, origin.members, fresh)
        _verify(entry, origin, fresh)
        if place.exists():
            move(place, Path(scratch) / "old")
        move(fresh, place)


def _verify(entry: Source, origin: Origin, path: Path) -> None:
    digest = table_digest(path, origin.members)
    if digest != origin.digest:
        raise FetchError(
            f"table {entry.name}: wrong checksum, got SHA-256 {digest}, expected {origin.digest}; "
            "nothing was installed: fetch it again, and report it if that does not help"
        )


def download(url: str, part: Path, timeout: float, progress: Progress) -> bool:
    """Download the URL into `part`; return whether the download was resumed.

    If the server ignores or refuses the range, the download starts from zero.
    """
    part.parent.mkdir(parents=True, exist_ok=True)
    start = part.stat().st_size if part.exists() else 0
    try:
        return _transfer(url, part, start, timeout, progress)
    except HTTPError as error:
        if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and start:
            part.unlink()
            return download(url, part, timeout, progress)
        raise FetchError(
            f"{url}: the server answered {error.code} {error.reason}; check the address"
        ) from error
    except (OSError, http.client.HTTPException) as error:
        # Our own errors, or a local file that cannot be written: not the server's fault.
        if isinstance(error, (FetchError, WriteError)) or getattr(error, "filename", None):
            raise
        reason = getattr(error, "reason", None) or error or type(error).__name__
        raise FetchError(f"{url}: {reason}; run the same command again to resume") from error


def _transfer(url: str, part: Path, start: int, timeout: float, progress: Progress) -> bool:
    request = Request(url, headers={"User-Agent": "lpzero"})
    if start:
        request.add_header("Range", f"bytes={start}-")
    with urlopen(request, timeout=timeout) as response:
        resumed = response.status == http.HTTPStatus.PARTIAL_CONTENT and _begins(response, start)
        start = start if resumed else 0
        length = response.headers.get("Content-Length")
        total = start + int(length) if length is not None and length.isdigit() else None
        with closing(AppendFile(part)) as file:
            if not resumed:
                file.truncate(0)
            done = _receive(url, response, file, start, total, progress)
            file.sync()
    if total is not None and done != total:
        raise FetchError(
            f"{url}: the connection closed after {done} of {total} bytes; "
            "run the same command again to resume"
        )
    return resumed


def _begins(response: Any, start: int) -> bool:
    """True; raise FetchError unless the partial response continues exactly at `start`."""
    match = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    if not match or int(match[1]) != start:
        raise FetchError(f"{response.url}: the server sent a different range; try again later")
    return True


def _receive(
    url: str, response: Any, file: AppendFile, done: int, total: int | None, progress: Progress
) -> int:
    while chunk := response.read(_CHUNK):
        done += len(chunk)
        if done > _LARGEST_DOWNLOAD:
            raise FetchError(
                f"{url}: more than {_LARGEST_DOWNLOAD} bytes; this is not the expected file"
            )
        file.append(chunk)
        progress(done, total)
    return done


LARGEST_MEMBER = 16 << 20
LARGEST_TOTAL = 256 << 20
MOST_MEMBERS = 500_000


def unpack(archive: Path, folder: str, members: str, into: Path) -> int:
    """Copy the matching files below `folder` of the archive and return their number.

    The first component of every path (repository and commit) is ignored.
    """
    pattern = re.compile(members)
    prefix = PurePosixPath(folder)
    n_files = total = 0
    try:
        with tarfile.open(archive, "r:gz") as tar:
            for index, member in enumerate(tar):
                if index >= MOST_MEMBERS:
                    raise FetchError(f"{archive}: more than {MOST_MEMBERS} members; refused")
                relative = _relative(member, prefix, archive)
                if relative is None or not pattern.fullmatch(relative.as_posix()):
                    continue
                total += _check_size(member, total, archive)
                _copy(tar, member, into / relative, archive)
                n_files += 1
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise FetchError(
            f"{archive}: broken or truncated archive ({error}); run the same command again"
        ) from error
    return n_files


def _relative(
    member: tarfile.TarInfo, prefix: PurePosixPath, archive: Path
) -> PurePosixPath | None:
    """The member's path relative to the wanted folder; None if it is elsewhere."""
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts:
        raise FetchError(f"{archive}: unsafe member {member.name!r}; the archive is refused")
    inner = PurePosixPath(*path.parts[1:])
    return inner.relative_to(prefix) if inner.is_relative_to(prefix) else None


def _check_size(member: tarfile.TarInfo, total: int, archive: Path) -> int:
    if not member.isreg():
        raise FetchError(
            f"{archive}: {member.name!r} is not a regular file; the archive is refused"
        )
    if member.size > LARGEST_MEMBER or total + member.size > LARGEST_TOTAL:
        raise FetchError(f"{archive}: {member.name!r} is too large; the archive is refused")
    return member.size


def _copy(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path, archive: Path) -> None:
    content = tar.extractfile(member)
    if content is None or path.exists():
        raise FetchError(f"{archive}: {member.name!r} is duplicated; the archive is refused")
    with content:
        write_bytes(path, content.read(LARGEST_MEMBER))
