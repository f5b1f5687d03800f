"""Tables by name: their descriptions, and loading them from a data root.

A module of this package that declares `SOURCES` is discovered; a new table needs nothing else.
"""

from __future__ import annotations

import logging
import os
import shlex
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import spaces
from spaces.declarations import declared, load_group
from spaces.errors import TableError, UnknownNameError
from spaces.tables.project_file import project_sources
from spaces.tables.source import Source
from spaces.untrusted import user_path

if TYPE_CHECKING:
    from spaces.tables.column_table import ColumnTable
    from spaces.tables.table import Table

DATA_VARIABLE = "LPZERO_DATA"
# They import this module, or dependencies that listing the tables does not need.
_NOT_TABLES = (
    "architecture_files",
    "column_files",
    "column_table",
    "registry",
    "row_files",
    "splits",
    "table",
)
logger = logging.getLogger(__name__)
_SOURCES: dict[str, Source] = {
    source.name: source
    for sources in declared(
        str(__package__),
        [str(Path(__file__).parent)],
        "SOURCES",
        lambda module: module.name not in _NOT_TABLES,
    )
    for source in sources
}
_ADDED: dict[str, Source] = {}


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


def add(entry: Source) -> None:
    """Know a plug-in's table."""
    if entry.name in _SOURCES:
        raise TableError(f"there is a table {entry.name} already; choose another name")
    _ADDED[entry.name] = entry


def forget(declared_in: str) -> None:
    """Remove the tables that a plug-in declared."""
    for name in [name for name, entry in _ADDED.items() if entry.declared_in == declared_in]:
        del _ADDED[name]


def names() -> list[str]:
    """Every table's name, sorted; those of the working folder's `lpzero.yaml` included."""
    return sorted({**_SOURCES, **_ADDED, **_of_project()})


def source(name: str) -> Source:
    """The source of the table of that name."""
    if name in _SOURCES:
        return _SOURCES[name]
    if name not in _ADDED:
        _load_plugins()
    sources = {**project_sources(), **_ADDED}
    if name not in sources:
        raise UnknownNameError("table", name, {**_SOURCES, **sources})
    return sources[name]


@lru_cache(maxsize=1)
def _load_plugins() -> None:
    """Know the tables of the entry-point group `lpzero.tables`: sources, or a module of them."""

    def take(name: str, offered: Any) -> None:
        declared = getattr(offered, "SOURCES", offered)
        for entry in declared if isinstance(declared, (tuple, list)) else (declared,):
            if not isinstance(entry, Source):
                raise TypeError(f"{type(entry).__name__} is not a Source")
            add(replace(entry, declared_in=entry.declared_in or name))

    load_group("lpzero.tables", take)


def _of_project() -> dict[str, Source]:
    """The tables of the project file; a broken one is noted, not fatal, where all are listed."""
    try:
        sources = project_sources()
    except TableError as error:
        logger.warning("%s; its tables are ignored", error)
        return {}
    for name in sources.keys() & _SOURCES.keys():
        logger.warning("table %s of %s is that of the package", name, sources[name].declared_in)
    return {name: entry for name, entry in sources.items() if name not in _SOURCES}


def data_root(data: str | os.PathLike[str] | None = None) -> Path | None:
    """The folder of the data given, else of the environment variable LPZERO_DATA, else None."""
    given = data if data is not None else os.environ.get(DATA_VARIABLE)
    return user_path(given) if given else None


def describe(data: str | os.PathLike[str] | None = None) -> list[Description]:
    """A description of every table, without loading any; an unreadable one is not present."""
    _load_plugins()
    sources = {**_SOURCES, **_ADDED, **_of_project()}
    return [_describe(entry, data_root(data)) for _, entry in sorted(sources.items())]


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
        if entry.declared_in is not None:
            raise
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
            f"table {entry.name} is not included: set {DATA_VARIABLE} to a folder for tables "
            f"or give --data FOLDER, and {_remedy(entry, root)}"
        )
    path = entry.path if root is None else root / entry.path
    if not path.exists():
        raise TableError(f"table {entry.name} is not at {path}; {_remedy(entry, root)}")
    return path


def _remedy(entry: Source, root: Path | None, force: bool = False) -> str:
    if entry.declared_in is not None:
        return f"it is declared in {entry.declared_in}"
    if entry.origin is None:
        return "it is part of the package: reinstall the package"
    command = f"lpzero tables fetch {entry.name}"
    if root is not None and root != data_root():
        command += f" --data {shlex.quote(str(root))}"
    return f"get it with: {command}{' --force' if force else ''}"
