"""Tables by name: their descriptions, and loading them from a data root.

A module of this package that declares `SOURCES` is discovered; a new table needs nothing else.
"""

from __future__ import annotations

import logging
import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import spaces
from spaces.declarations import declared
from spaces.errors import TableError, UnknownNameError
from spaces.tables.source import Source

if TYPE_CHECKING:
    from spaces.tables.column_table import ColumnTable
    from spaces.tables.table import Table

DATA_VARIABLE = "LPZERO_DATA"
# They import this module, or dependencies that listing the tables does not need.
_NOT_TABLES = (
    "archive",
    "column_files",
    "column_table",
    "digests",
    "fetch",
    "registry",
    "splits",
    "table",
)
logger = logging.getLogger(__name__)
_SOURCES: dict[str, Source] = {
    source.name: source
    for sources in declared(
        "spaces.tables",
        [str(Path(__file__).parent)],
        "SOURCES",
        lambda module: module.name not in _NOT_TABLES,
    )
    for source in sources
}


@dataclass(frozen=True, slots=True)
class Description:
    """The row of a table in `lpzero tables`.

    `n` is counted if the table is present, else it is what the registry states.
    """

    name: str
    n: int
    present: bool
    target: str
    licence: str
    space: str
    source: str


def names() -> list[str]:
    """Every table's name, sorted."""
    return sorted(_SOURCES)


def source(name: str) -> Source:
    """The registered source of the table of that name."""
    if name not in _SOURCES:
        raise UnknownNameError("table", name, _SOURCES)
    return _SOURCES[name]


def data_root(data: str | os.PathLike[str] | None = None) -> Path | None:
    """The folder of the data given, else of the environment variable LPZERO_DATA, else None."""
    given = data if data is not None else os.environ.get(DATA_VARIABLE)
    return Path(given).expanduser() if given else None


def describe(data: str | os.PathLike[str] | None = None) -> list[Description]:
    """A description of every table, without loading any; an unreadable one is not present."""
    return [_describe(entry, data_root(data)) for _, entry in sorted(_SOURCES.items())]


def load(name: str, data: str | os.PathLike[str] | None = None, space: str | None = None) -> Table:
    """The table of that name, read in its own space or in the one named."""
    table = load_any(name, data, space)
    if table.space is None:
        raise TableError(
            f"table {name} has columns and no networks; lpzero discover, rank, export and report"
            " take such tables, this does not"
        )
    return table


def load_any(
    name: str, data: str | os.PathLike[str] | None = None, space: str | None = None
) -> Table | ColumnTable:
    """The table of that name, with networks or without."""
    entry = source(name)
    root = data_root(data)
    path = locate(entry, root)
    try:
        table = entry.read(entry, path)
    except TableError as error:
        raise TableError(f"{error}; {_remedy(entry, root, force=True)}") from error
    if not entry.is_published(path):
        logger.warning("%s differs from the published table %s: so may the results", path, name)
    if space in (None, entry.space):
        return table
    if table.space is None:
        raise TableError(f"table {name} has no networks: it cannot be read in space {space}")
    return table.in_space(spaces.get(str(space)))


def _describe(entry: Source, root: Path | None) -> Description:
    try:
        n, present = entry.count(locate(entry, root)), True
    except TableError:
        n, present = entry.n, False
    return Description(
        entry.name, n, present, entry.target, entry.licence, entry.space, entry.provenance
    )


def locate(entry: Source, root: Path | None) -> Path:
    """The path of the table; raises TableError with the fetch command if it is missing."""
    if not entry.is_shipped and root is None:
        raise TableError(
            f"table {entry.name} needs a data root and none is set: set {DATA_VARIABLE} "
            f"or give --data FOLDER, and {_remedy(entry, root)}"
        )
    path = entry.path if root is None else root / entry.path
    if not path.exists():
        raise TableError(f"table {entry.name} is not at {path}; {_remedy(entry, root)}")
    return path


def _remedy(entry: Source, root: Path | None, force: bool = False) -> str:
    if entry.origin is None:
        return "it is part of the package: reinstall the package"
    command = f"lpzero tables fetch {entry.name}"
    if root is not None and root != data_root():
        command += f" --data {shlex.quote(str(root))}"
    return f"get it with: {command}{' --force' if force else ''}"
