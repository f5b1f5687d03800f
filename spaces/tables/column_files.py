"""Files of the user's as tables of columns: CSV, and the zero-cost files of NASLib.

CSV: a heading per column, a row per architecture, numbers but for one column of ids. NASLib: JSON,
task -> architecture -> proxy -> {"score": ..., "time": ...}, and the target as a number.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spaces.errors import TableError
from spaces.tables.column_table import ColumnTable, make_column_table
from spaces.tables.readers import read_json, read_text, refuse

MOST_BYTES = 200 << 20
MOST_ROWS = 50_000  # bootstrap intervals of so many need about 3 GB
MOST_COLUMNS = 500
ACCURACY = "val_accuracy"  # the target of NASLib's files
_IDS = ("id", "ids", "name", "arch", "architecture", "log name")
_MISSING = {"", "na", "n/a", "nan", "null", "none", "-"}
_ANY_JSON = (".json",)


@dataclass(frozen=True, slots=True)
class Reading:
    """How a file is read: its target, which way is better, its column of ids, its task."""

    target: str | None = None
    smaller_is_better: bool = False
    ids: str | None = None
    task: str | None = None


def is_file(name: str) -> bool:
    """Whether the name of a table is that of a file."""
    return name.lower().endswith((".csv", *_ANY_JSON)) or "/" in name


def read_columns(path: Path, reading: Reading) -> ColumnTable:
    """The table in the file; an error names the line and the column."""
    try:
        size = path.stat().st_size
    except OSError as error:
        raise TableError(f"{path}: cannot be read ({error.strerror})") from None
    if size > MOST_BYTES:
        refuse(str(path), f"{size >> 20:,} MB, at most {MOST_BYTES >> 20:,} MB are read")
    if path.suffix.lower() in _ANY_JSON:
        return read_naslib(path, reading)
    if reading.task is not None:
        refuse(str(path), "a task is for NASLib's JSON files; this is CSV")
    return read_csv(path, reading)


def read_csv(path: Path, reading: Reading) -> ColumnTable:
    """The table of a CSV file."""
    if reading.target is None:
        refuse(str(path), "no target is named; use --target COLUMN")
    headings, rows = _csv_rows(path)
    target = reading.target
    for wanted, option in ((target, "--target"), (reading.ids, "--id")):
        if wanted is not None and wanted not in headings:
            refuse(str(path), f"there is no column {wanted!r} ({option}); {_listed(headings)}")
    named = reading.ids or next((h for h in headings if h.lower() in _IDS and h != target), None)
    ids = [str(line) for line, _ in rows]
    if named is not None:
        ids = [fields[headings.index(named)].strip() for _, fields in rows]
        _check_distinct(path, named, ids, [line for line, _ in rows])
    numbers = {
        heading: [_number(path, line, heading, fields[place]) for line, fields in rows]
        for place, heading in enumerate(headings)
        if heading != named
    }
    return _made(path, _name(path), ids, numbers.pop(target), numbers, reading, target)


def read_naslib(path: Path, reading: Reading) -> ColumnTable:
    """The table of one task of a zero-cost file of NASLib."""
    tasks = read_json(path)
    if not isinstance(tasks, dict) or not all(isinstance(of, dict) for of in tasks.values()):
        refuse(str(path), "expected an object: task, architecture, proxy, score")
    if reading.task is None and len(tasks) != 1:
        refuse(str(path), f"it has {len(tasks)} tasks; choose one with --task: {_some(tasks)}")
    task = next(iter(tasks)) if reading.task is None else reading.task
    if task not in tasks:
        refuse(str(path), f"there is no task {task!r}; the file has: {_some(tasks)}")
    target = reading.target or ACCURACY
    records = tasks[task]
    if len(records) > MOST_ROWS:
        refuse(str(path), f"{len(records):,} rows, at most {MOST_ROWS:,} are read")
    targets: list[float] = []
    found: list[dict[str, float]] = []
    for arch, record in records.items():
        where = f"{path}: {task}, architecture {str(arch)[:40]!r}"
        if not isinstance(record, dict):
            refuse(where, "expected an object of proxies")
        if not found and target not in record:
            refuse(where, f"there is no {target!r} (--target); {_listed(list(record))}")
        targets.append(_json_number(where, target, record.get(target)))
        found.append({k: _score(where, k, v) for k, v in record.items() if isinstance(v, dict)})
    proxies = list(dict.fromkeys(name for scores in found for name in scores))
    columns = {name: [scores.get(name, math.nan) for scores in found] for name in proxies}
    columns.pop(target, None)
    name = f"{_name(path)}-{_plain(task)}"
    return _made(path, name, list(records), targets, columns, reading, target)


def _made(
    path: Path,
    name: str,
    ids: Sequence[str],
    targets: Sequence[float],
    columns: Mapping[str, Sequence[float]],
    reading: Reading,
    target: str,
) -> ColumnTable:
    if not columns:
        refuse(str(path), f"there is no column beside {target}")
    if len(columns) > MOST_COLUMNS:
        refuse(str(path), f"{len(columns):,} columns, at most {MOST_COLUMNS} are read")
    if reading.smaller_is_better:
        return make_column_table(name, ids, [-y for y in targets], columns, f"minus {target}")
    return make_column_table(name, ids, targets, columns, target)


def _csv_rows(path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The headings, and of each row its line and fields."""
    text = read_text(path).removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}")
    reader = csv.reader(io.StringIO(text))
    rows: list[tuple[int, list[str]]] = []
    try:
        headings = [heading.strip() for heading in next(reader, [])]
        for fields in reader:
            if not fields:
                continue
            if len(fields) != len(headings):
                found = f"{len(fields)} fields, expected {len(headings)}"
                refuse(f"{path}: line {reader.line_num}", found)
            rows.append((reader.line_num, fields))
            if len(rows) > MOST_ROWS:
                refuse(str(path), f"more than {MOST_ROWS:,} rows, which is the most that are read")
    except csv.Error as error:
        raise TableError(f"{path}: line {reader.line_num}: {error}") from None
    for heading in headings:
        if not heading or headings.count(heading) > 1:
            refuse(f"{path}: line 1", f"the heading {heading!r} is empty or not unique")
    if not rows:
        refuse(str(path), "there are no rows below the headings")
    return headings, rows


def _check_distinct(path: Path, heading: str, ids: Sequence[str], lines: Sequence[int]) -> None:
    seen: dict[str, int] = {}
    for one, line in zip(ids, lines, strict=True):
        if one in seen:
            refuse(
                f"{path}: line {line}, column {heading}", f"{one!r} is also the id of {seen[one]}"
            )
        seen[one] = line


def _number(path: Path, line: int, heading: str, text: str) -> float:
    """The field's number; NaN if it is missing or not finite."""
    stripped = text.strip()
    if stripped.lower() in _MISSING:
        return math.nan
    try:
        value = float(stripped)
    except ValueError:
        refuse(
            f"{path}: line {line}, column {heading}",
            f"{stripped[:40]!r} is not a number; a column of ids is named with --id",
        )
    return value if math.isfinite(value) else math.nan


def _json_number(where: str, name: str, value: Any) -> float:
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float):
        refuse(where, f"{name} = {value!r:.40}, expected a number")
    return float(value) if math.isfinite(value) else math.nan


def _score(where: str, name: str, value: Mapping[str, Any]) -> float:
    if "score" not in value:
        refuse(where, f"{name} has no score")
    return _json_number(where, f"{name}.score", value["score"])


def _name(path: Path) -> str:
    return _plain(path.stem) or "columns"


def _plain(text: str) -> str:
    """The text as the name of a table: lower-case words joined by hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _listed(names: Sequence[str]) -> str:
    return f"the file has: {_some(names)}"


def _some(names: Any) -> str:
    shown = [str(name)[:40] for name in names]
    return ", ".join(shown[:12]) + (", ..." if len(shown) > 12 else "")
