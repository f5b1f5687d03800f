"""Extraction of selected files from an untrusted .tar.gz.

Content is copied to paths that this module builds, never by tarfile's own extraction. The whole
archive is refused if any member has an absolute path or `..`, or if a selected member is not a
regular file.
"""

from __future__ import annotations

import re
import tarfile
import zlib
from pathlib import Path, PurePosixPath

from lpzero.files import write_bytes
from spaces.errors import FetchError

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
