"""Train, valid and test rows of a table, which depend only on the table's content and a seed.

Half of the rows are train, a fifth valid, three tenths test, in the same shares for every depth
where there are depths. Equal architectures stay in one part (the FlexiBERT benchmark contains nine
twice), and so do rows that agree in every column of a table without networks, so that the test part
never contains a training architecture. Rows are sorted by SHA-256, so that a split is the same
in every process, on every platform and with every library version.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, overload

import numpy as np

from spaces.errors import TableError
from spaces.tables.column_table import ColumnTable
from spaces.tables.table import IntArray, Table

TENTHS = {"train": 5, "valid": 2, "test": 3}
MIN_ROWS = 10


class Split:
    """Sorted row numbers of the three parts; the test part is hidden until `open_test`.

    A search gets `hide_test(table)`, whose test targets are NaN, so it cannot have read them.
    `is_open` is whether `open_test` was called.
    """

    def __init__(self, seed: int, train: IntArray, valid: IntArray, test: IntArray) -> None:
        self.seed = seed
        self.train = train
        self.valid = valid
        self._test = test
        self._is_open = False

    @property
    def is_open(self) -> bool:
        """Whether the test rows were ever returned."""
        return self._is_open

    def open_test(self) -> IntArray:
        """The test rows; to be called once, when the result is reported."""
        self._is_open = True
        return self._test

    @overload
    def hide_test(self, table: Table) -> Table: ...
    @overload
    def hide_test(self, table: ColumnTable) -> ColumnTable: ...
    def hide_test(self, table: Table | ColumnTable) -> Table | ColumnTable:
        """The table without the targets of the test rows."""
        return table.hide(self._test)


def split(table: Table | ColumnTable, seed: int) -> Split:
    """The split of the table with that seed."""
    if len(table) < MIN_ROWS:
        raise TableError(
            f"table {table.name} has {len(table)} rows, a split needs at least {MIN_ROWS}: "
            "use a larger table"
        )
    parts: dict[str, list[int]] = {part: [] for part in TENTHS}
    done = 0
    for rows in _shuffled_units(table, seed):
        done += len(rows)
        # The part furthest below its share gets the next unit, so every section of the order,
        # and with it every depth, is divided in the same shares.
        part = max(TENTHS, key=lambda name: TENTHS[name] * done - 10 * len(parts[name]))
        parts[part].extend(rows)
    return _split_of(seed, parts)


def whole_table_split(table: Table | ColumnTable, seed: int, n_train: int) -> Split:
    """A split whose train part is about `n_train` rows of the whole table, drawn without strata.

    Equal architectures stay in one part, so that train may have a row less. A fifth of the table is
    valid and all other rows are test.
    """
    n_valid = len(table) * TENTHS["valid"] // 10
    if len(table) - n_train - n_valid < MIN_ROWS:
        raise TableError(
            f"table {table.name} has {len(table)} rows: with {n_train} of the whole table for"
            f" fitness fewer than {MIN_ROWS} are left to test on"
        )
    units = _units(table)
    units.sort(key=lambda rows: _draw(table, seed, f"whole {rows[0]}"))
    parts: dict[str, list[int]] = {part: [] for part in TENTHS}
    room = {"train": n_train, "valid": n_valid, "test": len(table)}
    for rows in units:
        part = next(name for name in TENTHS if len(parts[name]) + len(rows) <= room[name])
        parts[part].extend(rows)
    return _split_of(seed, parts)


def _split_of(seed: int, parts: Mapping[str, Sequence[int]]) -> Split:
    arrays = {part: np.array(sorted(rows), dtype=np.int64) for part, rows in parts.items()}
    for array in arrays.values():
        array.flags.writeable = False
    return Split(seed, **arrays)


def _units(table: Table | ColumnTable) -> list[list[int]]:
    """Groups of rows with equal keys."""
    units: dict[Any, list[int]] = {}
    for row, key in enumerate(table.twins()):
        units.setdefault(key, []).append(row)
    return list(units.values())


def _shuffled_units(table: Table | ColumnTable, seed: int) -> Sequence[list[int]]:
    """Groups of rows with equal keys, sorted by stratum and shuffled within it."""
    strata = table.strata()

    def order(rows: list[int]) -> tuple[str, str]:
        return _draw(table, seed, strata[rows[0]]), _draw(table, seed, f"row {rows[0]}")

    return sorted(_units(table), key=order)


def _draw(table: Table | ColumnTable, seed: int, what: str) -> str:
    return hashlib.sha256(f"{table.digest} {seed} {what}".encode()).hexdigest()
