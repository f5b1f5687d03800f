"""Tables: architectures with targets, by name, with their splits and downloads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spaces.tables.registry import Description, data_root, describe, load, load_any, names, source

if TYPE_CHECKING:
    from spaces.tables.column_table import ColumnTable
    from spaces.tables.splits import Split, split
    from spaces.tables.table import Table

__all__ = [
    "ColumnTable",
    "Description",
    "Split",
    "Table",
    "data_root",
    "describe",
    "load",
    "load_any",
    "names",
    "source",
    "split",
]

_LAZY = {"ColumnTable": "column_table", "Table": "table", "Split": "splits", "split": "splits"}


def __getattr__(name: str) -> Any:
    # These need NumPy, which listing the tables does not.
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
