"""Files of rows: CSV, JSON lines, and Parquet where pyarrow is installed.

A row keeps the place that error messages name it by. Cells are texts (CSV) or JSON values.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spaces.errors import TableError, shown
from spaces.tables import parquet_rows
from spaces.tables.readers import refuse
from spaces.untrusted import UntrustedError, check_regular, check_values, pieces_of, read_regular

CSV, JSON_LINES, PARQUET = (".csv",), (".jsonl", ".ndjson"), (".parquet", ".pq")
ENDINGS = (*CSV, *JSON_LINES, *PARQUET)
MOST_BYTES = 200 << 20
MOST_ROWS = 50_000  # bootstrap intervals of so many need about 3 GB
MOST_HEADINGS = 5_000
MOST_CELLS = 5_000_000  # a cell takes about 60 bytes of memory
_MISSING = {"", "na", "n/a", "nan", "null", "none", "-"}


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

    def has_texts(self, heading: str) -> bool:
        """Whether some cell under the heading is a text that is no number."""
        return any(_is_text(cell) for cell in self.column(heading))

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


def is_frame(value: Any) -> bool:
    """Whether the value is a DataFrame: of pandas, or of the dataframe interchange protocol."""
    return hasattr(value, "iloc") or hasattr(value, "__dataframe__")


def rows_of_frame(frame: Any, name: str) -> Rows:
    """The rows of a DataFrame of pandas, or of another library by way of pyarrow."""
    if hasattr(frame, "iloc"):
        headings = [str(heading) for heading in frame.columns]
        _check_counts(name, len(frame), len(headings))
        columns = [frame.iloc[:, place].tolist() for place in range(len(headings))]
    else:
        try:
            from pyarrow.interchange import from_dataframe
        except ImportError:
            raise TableError(
                f"{name}: a DataFrame of {type(frame).__module__.partition('.')[0]} is read by"
                " pyarrow, which is not installed: pip install 'lpzero[pandas]'"
            ) from None
        table = from_dataframe(frame)
        headings = list(table.column_names)
        _check_counts(name, table.num_rows, len(headings))
        columns = [table.column(heading).to_pylist() for heading in headings]
    cells = list(zip(*columns, strict=True))
    return _checked(Rows(name, headings, list(cells), [f"row {i}" for i in range(len(cells))]))


def check_size(path: Path) -> None:
    """Raise TableError unless there is such a regular file that is not too large."""
    try:
        check_regular(path, MOST_BYTES)
    except UntrustedError as error:
        raise TableError(str(error)) from None
    except OSError as error:
        raise TableError(f"{path}: cannot be read ({error.strerror})") from None


def count_rows(path: Path) -> int:
    """About how many rows there are, without reading them as rows."""
    check_size(path)
    if path.suffix.lower() in PARQUET:
        return int(parquet_rows.read(str(path), _read(path), 0, 0)["n_rows"])
    lines = sum(piece.count(b"\n") for piece in pieces_of(path))
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
        value = cell
    return finite_or_nan(value)


def finite_or_nan(value: float) -> float:
    """The number as a float; NaN if it is not finite, as an integer of hundreds of digits."""
    try:
        number = float(value)
    except OverflowError:
        return math.nan
    return number if math.isfinite(number) else math.nan


def is_missing(cell: Any) -> bool:
    """Whether the cell has nothing in it."""
    if isinstance(cell, float):
        return math.isnan(cell)
    return cell is None or (isinstance(cell, str) and cell.strip().lower() in _MISSING)


def _is_text(cell: Any) -> bool:
    if not isinstance(cell, str) or is_missing(cell):
        return False
    try:
        float(cell)
    except ValueError:
        return True
    return False


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
    for name, place in zip(ids, rows.places, strict=True):
        if name in seen:
            refuse(
                f"{rows.path}: {place}, column {heading}",
                f"{name!r} is also the id of {seen[name]}",
            )
        seen[name] = place


def _csv(path: Path) -> Rows:
    reader = csv.reader(_lines(path, _read(path)))
    cells: list[Sequence[Any]] = []
    places: list[str] = []
    try:
        headings = [heading.strip() for heading in next(reader, [])]
        for fields in reader:
            if not fields:
                continue
            if len(fields) != len(headings):
                problem = f"{len(fields)} fields, expected {len(headings)}"
                refuse(f"{path}: line {reader.line_num}", problem)
            cells.append(fields)
            places.append(f"line {reader.line_num}")
            _check_counts(str(path), len(cells), len(headings))
    except csv.Error as error:
        raise TableError(f"{path}: line {reader.line_num}: {error}") from None
    return _checked(Rows(str(path), headings, cells, places))


def _json_lines(path: Path) -> Rows:
    records: list[dict[str, Any]] = []
    places: list[str] = []
    headings: dict[str, None] = {}
    data = _read(path)
    try:
        check_values(data, path)
    except UntrustedError as error:
        raise TableError(str(error)) from None
    for line, text in enumerate(_lines(path, data), 1):
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
        headings.update(dict.fromkeys(record))
        _check_counts(str(path), len(records), len(headings))
    cells: list[Sequence[Any]] = [[record.get(name) for name in headings] for record in records]
    return _checked(Rows(str(path), list(headings), cells, places))


def _read(path: Path) -> bytes:
    try:
        return read_regular(path, MOST_BYTES)
    except UntrustedError as error:
        raise TableError(str(error)) from None
    except OSError as error:
        raise TableError(f"{path}: cannot be read ({error.strerror})") from None


def _lines(path: Path, data: bytes) -> Iterator[str]:
    """The lines of the text one at a time: all of it decoded takes several times the memory."""
    try:
        yield from io.TextIOWrapper(io.BytesIO(data), encoding="utf-8-sig", newline="\n")
    except UnicodeDecodeError:
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise TableError(f"{path}: not UTF-8 text (byte {error.start})") from None


def _parquet(path: Path) -> Rows:
    found = parquet_rows.read(str(path), _read(path), MOST_ROWS, MOST_CELLS)
    _check_counts(str(path), found["n_rows"], found["n_columns"])
    cells: list[Sequence[Any]] = list(zip(*found["columns"], strict=True))
    places = [f"row {row}" for row in range(len(cells))]
    return _checked(Rows(str(path), found["headings"], cells, places))


def _checked(rows: Rows) -> Rows:
    counts = Counter(rows.headings)
    for heading in rows.headings:
        if not heading or counts[heading] > 1:
            refuse(f"{rows.path}: line 1", f"the heading {heading!r} is empty or not unique")
    if not rows.cells:
        refuse(rows.path, "there are no rows below the headings")
    return rows


def _check_counts(where: str, n_rows: int, n_headings: int) -> None:
    """Raise TableError if there are more rows, columns or cells than are read."""
    for n, most, what in (
        (n_rows, MOST_ROWS, "rows"),
        (n_headings, MOST_HEADINGS, "columns"),
        (n_rows * n_headings, MOST_CELLS, "cells"),
    ):
        if n > most:
            refuse(where, f"more than {most:,} {what}, which is the most that are read")
