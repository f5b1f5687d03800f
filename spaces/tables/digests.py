"""Digests of a table's file or folder: whether it is the published one."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

_CHUNK = 1 << 16


def file_digest(path: Path) -> str:
    """The SHA-256 of the file's bytes, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def tree_digest(folder: Path, members: str) -> str:
    """The SHA-256 over the sorted (relative path, SHA-256 of content) of the matching files.

    Archives of one commit differ in their bytes from day to day; what they unpack to does not.
    """
    pattern = re.compile(members)
    files = (path for path in folder.rglob("*") if path.is_file())
    paths = sorted(path.relative_to(folder).as_posix() for path in files)
    digest = hashlib.sha256()
    for path in filter(pattern.fullmatch, paths):
        digest.update(f"{path}\0{file_digest(folder / path)}\n".encode())
    return digest.hexdigest()


def table_digest(path: Path, members: str | None) -> str:
    """The digest of a file or, with the pattern of its members, of a folder."""
    if members is None:
        return file_digest(path) if path.is_file() else "(no file)"
    return tree_digest(path, members)
