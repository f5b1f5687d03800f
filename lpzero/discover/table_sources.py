"""Tables of a campaign by name, or by the path of a file of columns, and how to read them again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spaces.tables import load_any

if TYPE_CHECKING:
    from spaces.tables import ColumnTable, Table
    from spaces.tables.column_files import Reading


class TableSources:
    """Loads tables; `files` has, by a table's name, the path and the reading of its file.

    `kept` are those of the campaign to resume, whose tables are known by their names alone.
    """

    def __init__(
        self,
        data: str | os.PathLike[str] | None = None,
        reading: Reading | None = None,
        kept: Mapping[str, Any] | None = None,
    ) -> None:
        self._data, self._reading, self._kept = data, reading, dict(kept or {})
        self.files: dict[str, Any] = {}

    def load(self, name: str, space: str | None = None) -> Table | ColumnTable:
        """The table of that name or in that file."""
        from spaces.tables.column_files import Reading, is_file, read_columns

        known = self._kept.get(name)
        if known is None and not is_file(name):
            return load_any(name, self._data, space)
        path = Path(name if known is None else known["path"]).expanduser().absolute()
        reading = self._reading or Reading()
        if self._reading is None and known is not None:
            reading = Reading(**known["reading"])
        table = read_columns(path, reading)
        self.files[table.name] = {"path": str(path), "reading": asdict(reading)}
        return table
