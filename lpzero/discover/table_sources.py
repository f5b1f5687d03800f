"""Tables by name, or by the path of a user's file, and how to read them again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spaces.untrusted import user_path

if TYPE_CHECKING:
    from spaces.tables import ColumnTable, Table
    from spaces.tables.readers import ReadOptions


class TableSources:
    """Loads tables; `files` has, by a table's name, the path and the reading of its file.

    `by_name` loads a table that is not a file, in a space if one is named. `kept` are the files of
    the campaign to resume, whose tables are known by their names alone.
    """

    def __init__(
        self,
        by_name: Callable[[str, str | None], Table | ColumnTable],
        reading: ReadOptions | None = None,
        kept: Mapping[str, Any] | None = None,
    ) -> None:
        self._by_name, self._reading, self._kept = by_name, reading, dict(kept or {})
        self.files: dict[str, Any] = {}

    def load(self, name: str, space: str | None = None) -> Table | ColumnTable:
        """The table of that name or in that file; with a space its rows are architectures."""
        from spaces.tables.column_files import is_file
        from spaces.tables.readers import ReadOptions

        kept = self._kept.get(name)
        if kept is None and not is_file(name):
            return self._by_name(name, space)
        path = user_path(name if kept is None else kept["path"]).absolute()
        reading = self._reading or ReadOptions()
        if self._reading is None and kept is not None:
            reading = ReadOptions(**kept["reading"])
        # The entry of a stored campaign has the space's name, its file the space's address.
        wanted = space if kept is None else kept.get("space")
        table, address = read_file(path, reading, wanted)
        entry = {"path": str(path), "reading": reading.to_json()}
        self.files[table.name] = entry if address is None else {**entry, "space": address}
        return table


def read_file(
    path: Path, reading: ReadOptions, space: str | None
) -> tuple[Table | ColumnTable, str | None]:
    """The table in a user's file, and the address of its space if its rows are architectures."""
    from spaces.tables.nano import is_trained, read_trained
    from spaces.user_modules import address_of

    if is_trained(path):
        table = read_trained(path, space)
        return table, address_of(table.space)
    if space is None:
        from spaces.tables.column_files import read_columns

        return read_columns(path, reading), None
    import spaces
    from spaces.tables.architecture_files import read_architectures

    home = spaces.get(space)
    return read_architectures(path, home, reading), address_of(home)


def has_no_networks(name: str, space: str | None = None) -> bool:
    """Whether the name is that of a file without a space, or of a known table of columns."""
    from spaces.tables import names, source
    from spaces.tables.column_files import is_file
    from spaces.tables.source import NO_SPACE

    if is_file(name):
        from spaces.tables.nano import is_trained

        return space is None and not is_trained(user_path(name))
    return name in names() and source(name).space == NO_SPACE
