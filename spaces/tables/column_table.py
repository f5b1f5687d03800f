"""A table of columns: rows with targets and other numbers, without a space and without networks.

It has what judging and splitting need (ids, targets, a digest), and columns that formulas may use.
Nothing in it can be built or counted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from spaces.errors import TableError
from spaces.tables.table import FloatArray, IntArray, blank, frozen


@dataclass(frozen=True, eq=False)
class ColumnTable:
    """Row i is `ids[i]` with `targets[i]` (n,) and, under each heading, `columns[heading][i]` (n,).

    Every number is finite. `remarks` say what was left out on reading.
    """

    name: str
    targets: FloatArray
    target: str
    licence: str
    ids: tuple[str, ...]
    digest: str
    columns: Mapping[str, FloatArray]
    ceiling: float | None = None
    remarks: tuple[str, ...] = ()
    space: None = None  # what tells it from a table of architectures

    def __len__(self) -> int:
        return len(self.ids)

    def twins(self) -> Sequence[tuple[float, ...]]:
        """A key for each row; rows that agree in every column are the same to any formula."""
        return [tuple(row) for row in np.stack(list(self.columns.values()), axis=1).tolist()]

    def strata(self) -> Sequence[str]:
        """The stratum of each row: one for all, because there is no depth."""
        return ["row"] * len(self)

    def hide(self, rows: IntArray) -> ColumnTable:
        """The table with the targets of these rows made NaN; columns are inputs and stay."""
        return replace(self, targets=blank(self.targets, rows))


def make_column_table(
    name: str,
    ids: Sequence[str],
    targets: Sequence[float],
    columns: Mapping[str, Sequence[float]],
    target: str,
    licence: str = "of the file",
    remarks: Sequence[str] = (),
) -> ColumnTable:
    """The table of the rows that have a target, without columns that are incomplete or constant.

    What is left out is counted in `remarks`. Raises TableError if nothing is left to rank.
    """
    notes, known = list(remarks), np.isfinite(np.array(targets, dtype=np.float64))
    if not known.all():
        notes.append(f"{name}: {int((~known).sum()):,} rows without a {target} are left out")
    kept = frozen(np.array(targets, dtype=np.float64)[known])
    if len(kept) and np.ptp(kept) == 0:
        raise TableError(f"{name}: {target} is {kept[0]:g} in every row; nothing can be ranked")
    usable: dict[str, FloatArray] = {}
    for heading, values in columns.items():
        column = frozen(np.array(values, dtype=np.float64)[known])
        missing = int((~np.isfinite(column)).sum())
        if missing:
            notes.append(f"{name}: column {heading} is left out, {missing:,} rows have no number")
        elif len(column) and np.ptp(column) == 0:
            notes.append(f"{name}: column {heading} is left out, it is the same in every row")
        else:
            usable[heading] = column
    if not len(kept) or not usable:
        what = "row has a target" if not len(kept) else "column has a number in every row"
        raise TableError(f"{name}: no {what}" + "".join(f"; {note}" for note in notes[:1]))
    rows = tuple(str(one) for one, is_kept in zip(ids, known, strict=True) if is_kept)
    digest = _digest(rows, kept, usable)
    return ColumnTable(name, kept, target, licence, rows, digest, usable, remarks=tuple(notes))


def _digest(ids: Sequence[str], targets: FloatArray, columns: Mapping[str, FloatArray]) -> str:
    """SHA-256 over ids, targets and columns, in order, as little-endian floats."""
    digest = hashlib.sha256("\n".join(ids).encode())
    for heading, column in {"": targets, **columns}.items():
        digest.update(heading.encode() + b"\n" + column.astype("<f8").tobytes())
    return digest.hexdigest()
