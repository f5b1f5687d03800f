"""Tables that a user names in the file `lpzero.yaml` of the working folder.

    tables:
      my-table:
        file: results.csv          # relative to this file
        space: my_module:SPACE     # left out for a table of columns without networks
        target: accuracy
        smaller_is_better: false   # and id, task, licence, where they are needed

Nothing of it is run or read before a table is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spaces.errors import TableError, as_text, shown
from spaces.tables.readers import ReadOptions, read_yaml, refuse
from spaces.tables.source import NO_SPACE, Source
from spaces.untrusted import user_path

if TYPE_CHECKING:
    from spaces.tables.column_table import ColumnTable
    from spaces.tables.table import Table

PROJECT = "lpzero.yaml"
_TEXTS = ("file", "space", "target", "id", "task", "licence")
_FIELDS = (*_TEXTS, "smaller_is_better")
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class Entry:
    """One table of the project file."""

    path: Path
    space: str | None
    reading: ReadOptions
    licence: str | None


def project_sources(folder: Path | None = None) -> dict[str, Source]:
    """The tables of the folder's `lpzero.yaml`, by name; none if there is no such file."""
    path = (folder or Path.cwd()) / PROJECT
    if not path.is_file():
        return {}
    content = read_yaml(path)
    tables = content.get("tables", {}) if isinstance(content, Mapping) else None
    if not isinstance(tables, Mapping) or set(content) - {"tables"}:
        refuse(str(path), "expected an object with one field, `tables`: name, file, target")
    return sources_of(tables, path, str(path))


def sources_of(tables: Any, path: Path, declared_in: str) -> dict[str, Source]:
    """The tables that a file declares, by name; their files are relative to its folder."""
    if not isinstance(tables, Mapping):
        refuse(str(path), f"tables are {shown(tables)}, expected an object by name")
    named = {as_text(name): given for name, given in tables.items()}
    return {name: _source(path, name, given, declared_in) for name, given in named.items()}


def _source(path: Path, name: str, given: Any, declared_in: str) -> Source:
    where = f"{path}: table {name}"
    if not _NAME.fullmatch(name):
        refuse(where, "a name has lower-case letters, digits and hyphens")
    if not isinstance(given, Mapping):
        refuse(where, f"got {shown(given)}, expected file, target, ...")
    for field, value in given.items():
        if field not in _FIELDS:
            near = get_close_matches(as_text(field), _FIELDS, n=1)
            hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(_FIELDS)}"
            refuse(where, f"there is no field {shown(field)}{hint}")
        expected = str if field in _TEXTS else bool
        if not isinstance(value, expected):
            kind = "a text" if expected is str else "true or false"
            refuse(where, f"{field} = {shown(value)}, expected {kind}")
    if "file" not in given:
        refuse(where, "the field file is missing")
    reading = ReadOptions(
        given.get("target"),
        given.get("smaller_is_better", False),
        given.get("id"),
        given.get("task"),
    )
    file = (path.parent / user_path(given["file"])).absolute()
    entry = Entry(file, given.get("space"), reading, given.get("licence"))
    target = reading.target or "val_accuracy"
    return Source(
        name=name,
        space=entry.space or NO_SPACE,
        n=0,
        target=f"minus {target}" if reading.smaller_is_better else target,
        licence=entry.licence or "of the file",
        path=file,
        read=partial(_read, entry),
        count=_count,
        declared_in=declared_in,
    )


def _read(entry: Entry, source: Source, path: Path) -> Table | ColumnTable:
    import spaces

    if entry.space is None:
        from spaces.tables.column_files import read_columns

        columns = read_columns(path, entry.reading)
        return replace(columns, name=source.name, licence=source.licence)
    from spaces.tables.architecture_files import read_architectures

    space = spaces.load(entry.space)  # the user wrote its address, in this file or in a plug-in
    table = read_architectures(path, space, entry.reading, source.name)
    return replace(table, licence=source.licence)


def _count(path: Path) -> int:
    from spaces.tables.row_files import ENDINGS, count_rows

    if path.suffix.lower() not in ENDINGS:
        raise TableError(f"{path}: only the rows of CSV, JSON lines and Parquet are counted")
    return count_rows(path)
