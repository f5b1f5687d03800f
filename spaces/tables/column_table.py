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
from spaces.tables.table import BoolArray, FloatArray, IntArray, blank, frozen

FEW_NUMBERS = 0.1  # the share of a column that may be filled
FEW_ROWS = 0.05  # the share of rows that may be left out because numbers are missing


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

    def __repr__(self) -> str:
        told = "".join(f"; {remark}" for remark in self.remarks)
        return f"ColumnTable({self.name}: {len(self)} rows, {self.target}){told}"

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
    impute: bool = False,
) -> ColumnTable:
    """The table of the rows that have a target, without columns that are incomplete or constant.

    Where few rows lack a number, these rows are left out instead of the columns; with `impute`
    columns that lack fewer than a tenth are filled first. What is left out or filled is counted in
    `remarks`. Raises TableError if nothing is left to rank.
    """
    notes, has_target = list(remarks), np.isfinite(np.array(targets, dtype=np.float64))
    if not has_target.all():
        notes.append(f"{name}: {int((~has_target).sum()):,} rows without a {target} are left out")
    given = {heading: np.array(values, dtype=np.float64) for heading, values in columns.items()}
    if impute:
        given, filled = _imputed(given, has_target)
        notes += [f"{name}: {note}" for note in filled]
    dropped, lacking = _incomplete(given, has_target)
    has_target &= ~lacking
    if lacking.any():
        notes.append(
            f"{name}: {int(lacking.sum()):,} rows that lack a number in some column are left out"
        )
    kept = frozen(np.array(targets, dtype=np.float64)[has_target])
    if len(kept) and np.ptp(kept) == 0:
        raise TableError(f"{name}: {target} is {kept[0]:g} in every row; nothing can be ranked")
    usable: dict[str, FloatArray] = {}
    for heading, values in given.items():
        column = frozen(values[has_target])
        if heading in dropped:
            missing = dropped[heading]
            notes.append(f"{name}: column {heading} is left out, {missing:,} rows have no number")
        elif len(column) and np.ptp(column) == 0:
            notes.append(f"{name}: column {heading} is left out, it is the same in every row")
        else:
            usable[heading] = column
    if not len(kept) or not usable:
        what = "row has a target" if not len(kept) else "column has a number in every row"
        raise TableError(f"{name}: no {what}" + "".join(f"; {note}" for note in notes[:1]))
    rows = tuple(str(row_id) for row_id, is_kept in zip(ids, has_target, strict=True) if is_kept)
    digest = _digest(rows, kept, usable)
    return ColumnTable(name, kept, target, licence, rows, digest, usable, remarks=tuple(notes))


def _imputed(
    columns: Mapping[str, FloatArray], has_target: BoolArray
) -> tuple[dict[str, FloatArray], list[str]]:
    """The columns with medians in place of few missing numbers, indicators of these, and notes."""
    filled: dict[str, FloatArray] = {}
    notes = []
    for heading, values in columns.items():
        hole: BoolArray = ~np.isfinite(values)
        missing = int((hole & has_target).sum())
        filled[heading] = values
        if 0 < missing < FEW_NUMBERS * has_target.sum():
            indicator = f"{heading}_missing"
            median = float(np.median(values[~hole & has_target]))
            filled[heading] = np.where(hole, median, values)
            filled[indicator] = hole.astype(np.float64)
            notes.append(
                f"column {heading}: {missing:,} missing numbers are its median {median:g},"
                f" {indicator} is 1 there"
            )
    return filled, notes


def _incomplete(
    columns: Mapping[str, FloatArray], has_target: BoolArray
) -> tuple[dict[str, int], BoolArray]:
    """The columns to leave out, with how many numbers they lack, and the rows (n,) to leave out.

    The emptiest columns go until the rows that still lack a number are few; then these rows go.
    """
    holes = {heading: ~np.isfinite(values) & has_target for heading, values in columns.items()}
    dropped: dict[str, int] = {}
    for heading in sorted(holes, key=lambda name: -int(holes[name].sum())):
        lacking: BoolArray = np.zeros(len(has_target), dtype=bool)
        for other, hole in holes.items():
            lacking |= hole & (other not in dropped)
        if lacking.sum() <= FEW_ROWS * has_target.sum():
            return dropped, lacking
        dropped[heading] = int(holes[heading].sum())
    return dropped, np.zeros(len(has_target), dtype=bool)


def _digest(ids: Sequence[str], targets: FloatArray, columns: Mapping[str, FloatArray]) -> str:
    """SHA-256 over ids, targets and columns, in order, as little-endian floats."""
    digest = hashlib.sha256("\n".join(ids).encode())
    for heading, column in {"": targets, **columns}.items():
        digest.update(heading.encode() + b"\n" + column.astype("<f8").tobytes())
    return digest.hexdigest()
