"""Files of the user's as tables of architectures: a space, and rows with a target.

A row has a column for each field of the architecture, or one column with the architecture as JSON
(`arch`, `architecture` or `config`). A field that is a list, such as the heads of every layer, is
written as JSON, as values between spaces or semicolons, or as columns `heads_0`, `heads_1`, ...
Every other column of numbers is kept beside the target. Rows of one architecture are trainings from
several seeds: they are averaged, and say how far the target repeats (the noise ceiling).
"""

from __future__ import annotations

import json
import logging
import math
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from spaces.base import Space
from spaces.errors import ArchitectureError, FieldError, TableError
from spaces.tables.readers import ReadOptions, refuse
from spaces.tables.row_files import (
    Rows,
    check_distinct,
    is_missing,
    number,
    plain_name,
    read_rows,
)
from spaces.tables.table import Table, make_table, noise_ceiling

_WHOLE = ("arch", "architecture", "config")
_IDS = ("id", "ids", "name")
_SEPARATORS = re.compile(r"[\s;,|]+")
LICENCE = "of the file"
logger = logging.getLogger(__name__)


def read_architectures(
    path: Path, space: Space[Any], reading: ReadOptions, name: str | None = None
) -> Table:
    """The table in the file; an error names the line and the column."""
    return table_of_rows(read_rows(path), space, reading, name or plain_name(path))


def table_of_rows(rows: Rows, space: Space[Any], reading: ReadOptions, name: str) -> Table:
    """The table of these rows."""
    if reading.target is None:
        refuse(rows.path, "no target is named; use --target COLUMN")
    if reading.task is not None:
        refuse(rows.path, "a task is for NASLib's JSON files")
    target = reading.target
    rows.require(target, "--target")
    if reading.ids is not None:
        rows.require(reading.ids, "--id")
    columns = _Columns(rows, space, target)
    named = reading.ids or next(
        (h for h in rows.headings if h.lower() in _IDS and h not in columns.used), None
    )
    ids = [str(index) for index in range(len(rows.cells))]
    if named is not None:
        ids = [str(cell).strip() for cell in rows.column(named)]
    targets = rows.numbers(target)
    archs = [columns.architecture(index) for index in range(len(rows.cells))]
    if named is not None and len(set(ids)) < len(set(zip(ids, archs, strict=True))):
        check_distinct(rows, named, ids)  # one id has several architectures
    kept = [index for index, value in enumerate(targets) if not math.isnan(value)]
    if not kept:
        refuse(rows.path, f"no row has a {target}")
    if len({targets[index] for index in kept}) == 1:
        refuse(rows.path, f"{target} is {targets[kept[0]]:g} in every row; nothing can be ranked")
    sign = -1.0 if reading.smaller_is_better else 1.0
    extra = _extra(rows, {*columns.used, target, named})
    same: dict[Any, list[int]] = {}
    for index in kept:
        same.setdefault(archs[index], []).append(index)
    if len(same) < len(kept):
        logger.warning(
            "%s: %d rows are of %d architectures; the rows of one are averaged, as trainings from"
            " several seeds",
            rows.path,
            len(kept),
            len(same),
        )
    return make_table(
        name,
        space,
        [(ids[of[0]], arch, sign * _mean(targets, of)) for arch, of in same.items()],
        f"minus {target}" if reading.smaller_is_better else target,
        LICENCE,
        {heading: [_mean(values, of) for of in same.values()] for heading, values in extra.items()},
        noise_ceiling([targets[index] for index in of] for of in same.values()),
        failed=len(targets) - len(kept),
    )


def _mean(values: Sequence[float], rows: Sequence[int]) -> float:
    """The mean over these rows; of one row its value, to the last bit."""
    return values[rows[0]] if len(rows) == 1 else math.fsum(values[i] for i in rows) / len(rows)


class _Columns:
    """Which columns of the file have the architecture, and the architecture of a row."""

    def __init__(self, rows: Rows, space: Space[Any], target: str) -> None:
        self.rows, self.space = rows, space
        self.example = space.to_json(space.sample(random.Random(0)))
        self.split = {name: self._split_headings(name) for name in self.example}
        fields = [name for name in self.example if name in rows.headings or self.split[name]]
        self.fields = [name for name in fields if name != target]
        self.whole = next((h for h in rows.headings if h.lower() in _WHOLE), None)
        if self.fields:
            self.whole = None
        elif self.whole is None:
            refuse(
                rows.path,
                f"no column has the architecture: expected {', '.join(self.example)}, or one column"
                f" arch with JSON; {rows.listed()}",
            )

    @property
    def used(self) -> set[str]:
        if self.whole is not None:
            return {self.whole}
        return {h for name in self.fields for h in (self.split[name] or [name])}

    def _split_headings(self, name: str) -> list[str]:
        """The headings name_0, name_1, ... or name.0, ... or name[0], ... of a list's values."""
        if not isinstance(self.example[name], list) or name in self.rows.headings:
            return []
        for pattern in ("{}_{}", "{}.{}", "{}[{}]"):
            headings = [pattern.format(name, index) for index in range(len(self.rows.headings))]
            present = [heading for heading in headings if heading in self.rows.headings]
            if present:
                return present
        return []

    def architecture(self, index: int) -> Any:
        """The architecture of a row."""
        where = f"{self.rows.path}: {self.rows.places[index]}"
        row = dict(zip(self.rows.headings, self.rows.cells[index], strict=True))
        if self.whole is not None:
            where += f", column {self.whole}"
            fields = _object(row[self.whole], where)
        else:
            fields = {name: self._value(name, row, where) for name in self.fields}
            fields = {name: value for name, value in fields.items() if value is not None}
        try:
            return self.space.from_json(fields)
        except FieldError as error:
            absent = error.field in self.example and error.field not in fields
            if absent and error.field not in self.fields and self.whole is None:
                refuse(
                    self.rows.path,
                    f"there is no column {error.field!r}, a field of the architecture;"
                    f" {self.rows.listed()}",
                )
            column = "" if self.whole is not None else f", column {error.field}"
            raise TableError(f"{where}{column}: {error.reason}") from None
        except ArchitectureError as error:
            missing = [name for name in self.example if name not in self.fields]
            if missing and self.whole is None:
                refuse(
                    self.rows.path,
                    f"there is no column {missing[0]!r}, a field of the architecture;"
                    f" {self.rows.listed()}",
                )
            raise TableError(f"{where}: {error}") from None

    def _value(self, name: str, row: Mapping[str, Any], where: str) -> Any:
        example = self.example[name]
        if self.split[name]:
            cells = [row[heading] for heading in self.split[name]]
            while cells and is_missing(cells[-1]):
                cells.pop()
            of = example[0] if example else None
            return [_cell(cell, of, f"{where}, column {name}") for cell in cells]
        if isinstance(example, list):
            of = example[0] if example else None
            return _list(row[name], of, f"{where}, column {name}")
        return _cell(row[name], example, f"{where}, column {name}")


def _extra(rows: Rows, used: set[Any]) -> dict[str, list[float]]:
    """The other columns that have numbers only."""
    columns = {}
    for heading in rows.headings:
        if heading in used:
            continue
        try:
            values = rows.numbers(heading)
        except TableError:
            continue
        if np.isfinite(values).any():
            columns[heading] = values
    return columns


def _object(cell: Any, where: str) -> dict[str, Any]:
    try:
        value = json.loads(cell) if isinstance(cell, str) else cell
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        refuse(where, "expected the architecture as a JSON object")
    return value


def _list(cell: Any, example: Any, where: str) -> list[Any]:
    """The values of a cell with several."""
    if hasattr(cell, "tolist"):
        cell = cell.tolist()
    if isinstance(cell, (list, tuple)):
        return list(cell)
    if not isinstance(cell, str):
        return [_cell(cell, example, where)]
    try:
        value = json.loads(cell)
    except (ValueError, RecursionError):
        parts = _SEPARATORS.split(cell.strip().strip("[]()"))
        return [_cell(part.strip("'\""), example, where) for part in parts if part]
    return value if isinstance(value, list) else [_cell(cell, example, where)]


def _cell(cell: Any, example: Any, where: str) -> Any:
    """The value of a field, of the kind of the example."""
    if is_missing(cell) and not isinstance(example, str):
        refuse(where, "the value is missing")
    if not isinstance(cell, str) or isinstance(example, str):
        return cell.strip() if isinstance(cell, str) else cell
    text = cell.strip()
    if isinstance(example, bool) and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if isinstance(example, (int, float)) and not isinstance(example, bool):
        value = number(text, where)
        return int(value) if value.is_integer() and "." not in text else value
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
