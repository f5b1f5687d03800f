"""Tables of a campaign by name, or by the path of a file of columns, and how to read them again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spaces.tables import ColumnTable, Table
    from spaces.tables.column_files import Reading


class TableSources:
    """Loads tables; `files` has, by a table's name, the path and the reading of its file.

    `by_name` loads a table that is not a file, in a space if one is named. `kept` are the files of
    the campaign to resume, whose tables are known by their names alone.
    """

    def __init__(
        self,
        by_name: Callable[[str, str | None], Table | ColumnTable],
        reading: Reading | None = None,
        kept: Mapping[str, Any] | None = None,
    ) -> None:
        self._by_name, self._reading, self._kept = by_name, reading, dict(kept or {})
        self.files: dict[str, Any] = {}

    def load(self, name: str, space: str | None = None) -> Table | ColumnTable:
        """The table of that name or in that file."""
        from spaces.tables.column_files import Reading, is_file, read_columns

        known = self._kept.get(name)
        if known is None and not is_file(name):
            return self._by_name(name, space)
        path = Path(name if known is None else known["path"]).expanduser().absolute()
        reading = self._reading or Reading()
        if self._reading is None and known is not None:
            reading = Reading(**known["reading"])
        table = read_columns(path, reading)
        self.files[table.name] = {"path": str(path), "reading": asdict(reading)}
        return table


def has_no_networks(name: str) -> bool:
    """Whether the name is that of a file of columns, or of a registered table of columns."""
    from spaces.tables import names, source
    from spaces.tables.column_files import is_file
    from spaces.tables.source import NO_SPACE

    return is_file(name) or (name in names() and source(name).space == NO_SPACE)
