"""Files of rows: CSV, JSON lines, and Parquet where pandas is installed.

A row keeps the place that error messages name it by. Cells are texts (CSV) or JSON values.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from spaces.errors import TableError, shown
from spaces.tables.readers import read_text, refuse

CSV, JSON_LINES, PARQUET = (".csv",), (".jsonl", ".ndjson"), (".parquet", ".pq")
ENDINGS = (*CSV, *JSON_LINES, *PARQUET)
MOST_BYTES = 200 << 20
MOST_ROWS = 50_000  # bootstrap intervals of so many need about 3 GB
_MISSING = {"", "na", "n/a", "nan", "null", "none", "-"}
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Row i has `cells[i]`, one for each heading, and stands at `places[i]` of the file."""

    path: str
    headings: list[str]
    cells: list[Sequence[Any]]
    places: list[str]

    def column(self, heading: str) -> list[Any]:
        """The cells under a heading."""
        place = self.headings.index(heading)
        return [row[place] for row in self.cells]

    def numbers(self, heading: str, hint: str = "") -> list[float]:
        """The numbers under a heading, NaN where they are missing; refuse other texts."""
        return [
            number(cell, f"{self.path}: {place}, column {heading}", hint)
            for place, cell in zip(self.places, self.column(heading), strict=True)
        ]

    def require(self, heading: str, option: str) -> None:
        """Raise TableError unless there is such a heading."""
        if heading not in self.headings:
            refuse(self.path, f"there is no column {heading!r} ({option}); {self.listed()}")

    def listed(self) -> str:
        """The headings, for a message."""
        return f"the file has: {some(self.headings)}"


def read_rows(path: Path) -> Rows:
    """The rows of the file, in the form that its name's ending says."""
    check_size(path)
    ending = path.suffix.lower()
    if ending in JSON_LINES:
        return _json_lines(path)
    return _parquet(path) if ending in PARQUET else _csv(path)


def rows_of_frame(frame: Any, name: str) -> Rows:
    """The rows of a pandas DataFrame."""
    headings = [str(heading) for heading in frame.columns]
    columns = [frame.iloc[:, place].tolist() for place in range(len(headings))]
    if len(frame) > MOST_ROWS:
        refuse(name, f"{len(frame):,} rows, at most {MOST_ROWS:,} are read")
    cells = list(zip(*columns, strict=True))
    return _checked(Rows(name, headings, list(cells), [f"row {i}" for i in range(len(cells))]))


def check_size(path: Path) -> None:
    """Raise TableError unless the file is there and not too large."""
    try:
        size = path.stat().st_size
    except OSError as error:
        raise TableError(f"{path}: cannot be read ({error.strerror})") from None
    if size > MOST_BYTES:
        refuse(str(path), f"{size >> 20:,} MB, at most {MOST_BYTES >> 20:,} MB are read")


def count_rows(path: Path) -> int:
    """About how many rows there are, without reading them as rows."""
    check_size(path)
    if path.suffix.lower() in PARQUET:
        return len(_parquet(path).cells)
    lines = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            lines += chunk.count(b"\n")
    return max(0, lines - (path.suffix.lower() in CSV))


def number(cell: Any, where: str, hint: str = "") -> float:
    """The cell's number; NaN if it is missing or not finite."""
    if cell is None:
        return math.nan
    if isinstance(cell, str):
        stripped = cell.strip()
        if stripped.lower() in _MISSING:
            return math.nan
        try:
            value = float(stripped)
        except ValueError:
            refuse(where, f"{stripped[:40]!r} is not a number{hint}")
    elif isinstance(cell, bool) or not isinstance(cell, (int, float)):
        refuse(where, f"{shown(cell)} is not a number{hint}")
    else:
        value = _to_float(cell)
    return value if math.isfinite(value) else math.nan


def is_missing(cell: Any) -> bool:
    """Whether the cell has nothing in it."""
    if isinstance(cell, float):
        return math.isnan(cell)
    return cell is None or (isinstance(cell, str) and cell.strip().lower() in _MISSING)


def plain_name(path: Path) -> str:
    """The name of the table in a file: lower-case words joined by hyphens."""
    return plain(path.stem) or "columns"


def plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def some(names: Any) -> str:
    """The first names, for a message."""
    listed = [str(name)[:40] for name in names]
    return ", ".join(listed[:12]) + (", ..." if len(listed) > 12 else "")


def check_distinct(rows: Rows, heading: str, ids: Sequence[str]) -> None:
    """Raise TableError if an id stands in two rows."""
    seen: dict[str, str] = {}
    for one, place in zip(ids, rows.places, strict=True):
        if one in seen:
            refuse(
                f"{rows.path}: {place}, column {heading}", f"{one!r} is also the id of {seen[one]}"
            )
        seen[one] = place


def _csv(path: Path) -> Rows:
    text = read_text(path, MOST_BYTES).removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}")
    reader = csv.reader(io.StringIO(text))
    cells: list[Sequence[Any]] = []
    places: list[str] = []
    try:
        headings = [heading.strip() for heading in next(reader, [])]
        for fields in reader:
            if not fields:
                continue
            if len(fields) != len(headings):
                found = f"{len(fields)} fields, expected {len(headings)}"
                refuse(f"{path}: line {reader.line_num}", found)
            cells.append(fields)
            places.append(f"line {reader.line_num}")
            _check_count(path, len(cells))
    except csv.Error as error:
        raise TableError(f"{path}: line {reader.line_num}: {error}") from None
    return _checked(Rows(str(path), headings, cells, places))


def _json_lines(path: Path) -> Rows:
    records: list[dict[str, Any]] = []
    places: list[str] = []
    for line, text in enumerate(io.StringIO(read_text(path, MOST_BYTES)), 1):
        if not text.strip():
            continue
        where = f"{path}: line {line}"
        try:
            record = json.loads(text)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            refuse(where, "expected a JSON object")
        records.append(record)
        places.append(f"line {line}")
        _check_count(path, len(records))
    headings = list(dict.fromkeys(name for record in records for name in record))
    cells: list[Sequence[Any]] = [[record.get(name) for name in headings] for record in records]
    return _checked(Rows(str(path), headings, cells, places))


def _parquet(path: Path) -> Rows:
    try:
        pandas = import_module("pandas")
    except ImportError:
        refuse(str(path), "Parquet needs pandas and pyarrow: pip install 'lpzero[pandas]'")
    try:
        frame = pandas.read_parquet(path)
    except ImportError:
        refuse(str(path), "Parquet needs pandas and pyarrow: pip install 'lpzero[pandas]'")
    except (OSError, ValueError) as error:
        reason = (str(error).splitlines() or ["no reason"])[0]
        refuse(str(path), f"it is not a Parquet file ({reason[:80]})")
    return rows_of_frame(frame, str(path))


def _checked(rows: Rows) -> Rows:
    for heading in rows.headings:
        if not heading or rows.headings.count(heading) > 1:
            refuse(f"{rows.path}: line 1", f"the heading {heading!r} is empty or not unique")
    if not rows.cells:
        refuse(rows.path, "there are no rows below the headings")
    return rows


def _check_count(path: Path, n: int) -> None:
    if n > MOST_ROWS:
        refuse(str(path), f"more than {MOST_ROWS:,} rows, which is the most that are read")


def _to_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf
