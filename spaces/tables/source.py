"""The registered facts of a table: its path, its origin, and how to read it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from spaces.untrusted import pieces_of

if TYPE_CHECKING:
    from spaces.tables.column_table import ColumnTable
    from spaces.tables.table import Table


NO_SPACE = "none"  # in place of a space's name, for tables without networks
DEPTH_WIDTH = "depth-width"  # the usual grouping of rows, by equal depth and width


@dataclass(frozen=True, slots=True)
class Origin:
    """A file or folder of a public repository at one commit.

    `members` is None for a file. For a folder it is a regular expression: files whose relative
    paths match are kept, everything else of the repository is ignored. `digest`
    is the SHA-256 of the file, or of the folder as `tree_digest` defines it.
    """

    repository: str
    commit: str
    path: str
    digest: str
    members: str | None = None

    @property
    def provenance(self) -> str:
        """The repository and the commit, in one word."""
        return f"github.com/{self.repository}@{self.commit[:8]}"


@dataclass(frozen=True, slots=True)
class Further:
    """Another file that a table reads: its path under the data root, and where it comes from."""

    path: Path
    origin: Origin


@dataclass(frozen=True, slots=True)
class Source:
    """One table: facts, how to read it, how to count its rows cheaply.

    `space` is NO_SPACE for a table of columns, without networks. `path` is relative to the data
    root, or absolute for a table shipped with the package; `shipped_digest` is the SHA-256 of the
    latter's file. `further` are the other files it needs, which are fetched with it. `drawn_from`
    is the space that its rows were drawn from, where that is only a part of `space`.
    `declared_in` is the file or plug-in of a user that names the table; its path is absolute too.
    """

    name: str
    space: str
    n: int
    target: str
    licence: str
    path: Path
    read: Callable[[Source, Path], Table | ColumnTable]
    count: Callable[[Path], int]
    origin: Origin | None = None
    shipped_digest: str | None = None
    further: tuple[Further, ...] = ()
    drawn_from: str | None = None
    declared_in: str | None = None

    def is_published(self, path: Path) -> bool:
        """Whether the content of the path is the published one."""
        if self.origin is None:
            return self.shipped_digest in (None, table_digest(path, None))
        return table_digest(path, self.origin.members) == self.origin.digest

    @property
    def is_shipped(self) -> bool:
        """Whether the table comes with the package rather than from a data root."""
        return self.path.is_absolute()

    @property
    def provenance(self) -> str:
        """Where the table comes from, in one word."""
        if self.declared_in is not None:
            return Path(self.declared_in).name
        if self.origin is None:
            return "shipped"
        return self.origin.provenance


def file_digest(path: Path) -> str:
    """The SHA-256 of the file's bytes, in hexadecimal."""
    digest = hashlib.sha256()
    for piece in pieces_of(path):
        digest.update(piece)
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
