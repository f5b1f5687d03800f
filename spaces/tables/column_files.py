"""Files of the user's as tables of columns: rows of numbers, and the zero-cost files of NASLib.

Rows (CSV, JSON lines, Parquet): a heading per column, a row per architecture, numbers but for one
column of ids. NASLib: JSON, task -> architecture -> proxy -> {"score": ..., "time": ...}, and the
target as a number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from spaces.errors import shown
from spaces.tables.column_table import ColumnTable, make_column_table
from spaces.tables.readers import ReadOptions, read_json, refuse
from spaces.tables.row_files import (
    ENDINGS,
    MOST_BYTES,
    MOST_ROWS,
    Rows,
    check_distinct,
    check_size,
    finite_or_nan,
    is_missing,
    plain,
    plain_name,
    read_rows,
    some,
)

MOST_COLUMNS = 500
MOST_CATEGORIES = 50
ACCURACY = "val_accuracy"  # the target of NASLib's files
_IDS = ("id", "ids", "name", "arch", "architecture", "log name")
_ANY_JSON = (".json",)
_LEVELS = 3  # the file, search spaces, tasks
_FAILED = -1e8  # what NASLib writes for a score that is not a number
_OUTCOMES = ("accuracy", "loss", "perplexity")
_COUNTING = ("id", "idx", "index")


def is_file(name: str) -> bool:
    """Whether the name of a table is that of a file."""
    return name.lower().endswith((*ENDINGS, *_ANY_JSON)) or "/" in name


def read_columns(path: Path, reading: ReadOptions) -> ColumnTable:
    """The table in the file; an error names the line and the column."""
    check_size(path)
    if path.suffix.lower() in _ANY_JSON:
        return read_naslib(path, reading)
    if reading.task is not None:
        refuse(str(path), "a task is for NASLib's JSON files; this has rows")
    return read_number_rows(path, reading)


def read_number_rows(path: Path, reading: ReadOptions) -> ColumnTable:
    """The table of a file of rows."""
    if reading.target is None:
        refuse(str(path), "no target is named; use --target COLUMN")
    return column_table(read_rows(path), reading, plain_name(path))


def column_table(rows: Rows, reading: ReadOptions, name: str) -> ColumnTable:
    """The table of these rows."""
    target = str(reading.target)
    rows.require(target, "--target")
    if reading.ids is not None:
        rows.require(reading.ids, "--id")
    usual = (h for h in rows.headings if h.lower() in _IDS and h != target)
    named = reading.ids or next(usual, None)
    ids = [place.rpartition(" ")[2] for place in rows.places]
    if named is not None:
        ids = [str(cell).strip() for cell in rows.column(named)]
        check_distinct(rows, named, ids)
    hint = "; a column of ids is named with --id, columns of texts are read with --categories"
    numbers: dict[str, list[float]] = {}
    for heading in rows.headings:
        if reading.categories and heading != target and rows.has_texts(heading):
            numbers |= _indicators(rows, heading) if heading != named else {}
        elif heading != named:
            numbers[heading] = rows.numbers(heading, hint)
    return _made(rows.path, name, ids, numbers.pop(target), numbers, reading, target)


def read_naslib(path: Path, reading: ReadOptions) -> ColumnTable:
    """The table of one task of a zero-cost file of NASLib."""
    tasks = _tasks(path)
    task = _chosen_task(path, tasks, reading.task)
    records = tasks[task]
    target = reading.target or ACCURACY
    if not records:
        refuse(str(path), f"task {task} has no architectures")
    if len(records) > MOST_ROWS:
        refuse(str(path), f"{len(records):,} rows, at most {MOST_ROWS:,} are read")
    where = f"{path}: {task}"
    if not any(target in record for record in records.values()):
        first = next(iter(records.values()))
        refuse(where, f"there is no {target!r} (--target); the file has: {some(first)}")
    targets: list[float] = []
    rows: list[dict[str, float]] = []
    for arch, record in records.items():
        place = f"{where}, architecture {str(arch)[:40]!r}"
        targets.append(_json_number(place, target, record.get(target)))
        rows.append(_scores(place, record, target))
    proxies = list(dict.fromkeys(name for scores in rows for name in scores))
    columns = {name: [scores.get(name, math.nan) for scores in rows] for name in proxies}
    name = f"{plain_name(path)}-{plain(task)}"
    return _made(str(path), name, list(records), targets, columns, reading, target)


Records = dict[str, dict[str, Any]]


def _tasks(path: Path) -> dict[str, Records]:
    """The architectures of each task; earlier files have the tasks under the search space."""
    tasks: dict[str, Records] = {}
    levels: list[tuple[str, Any]] = [("", read_json(path, MOST_BYTES))]
    for _ in range(_LEVELS):
        deeper: list[tuple[str, Any]] = []
        for name, node in levels:
            if not isinstance(node, dict) or not all(isinstance(of, dict) for of in node.values()):
                refuse(str(path), "expected an object: task, architecture, proxy, score")
            if name and all(_is_record(of) for of in node.values()):
                tasks[name] = node
            else:
                deeper += node.items()
        levels = deeper
    if levels or not tasks:
        refuse(str(path), "expected an object: task, architecture, proxy, score")
    return tasks


def _is_record(node: dict[str, Any]) -> bool:
    return any(not isinstance(of, dict) or "score" in of for of in node.values())


def _chosen_task(path: Path, tasks: Mapping[str, Records], wanted: str | None) -> str:
    if wanted is None:
        if len(tasks) != 1:
            refuse(str(path), f"it has {len(tasks)} tasks; choose one with --task: {some(tasks)}")
        return next(iter(tasks))
    alike = [task for task in tasks if task.lower() == wanted.lower()]
    if not alike:
        refuse(str(path), f"there is no task {wanted!r}; the file has: {some(tasks)}")
    return wanted if wanted in alike else alike[0]


def _scores(where: str, record: Mapping[str, Any], target: str) -> dict[str, float]:
    """The score of each proxy; texts beside them, such as the architecture, are no scores.

    Other outcomes of the training are left out: a formula of them would know the target.
    """
    scores = {}
    for name, value in record.items():
        if name == target or any(word in name.lower() for word in _OUTCOMES):
            continue
        if isinstance(value, dict):
            if "score" not in value:
                refuse(where, f"{name} has no score")
            value = value["score"]
        elif isinstance(value, str) or name.lower() in _COUNTING:
            continue
        number = _json_number(where, f"{name}.score", value)
        scores[name] = math.nan if number == _FAILED else number
    return scores


def _made(
    path: str,
    name: str,
    ids: Sequence[str],
    targets: Sequence[float],
    columns: Mapping[str, Sequence[float]],
    reading: ReadOptions,
    target: str,
) -> ColumnTable:
    if not columns:
        refuse(path, f"there is no column beside {target}")
    if len(columns) > MOST_COLUMNS:
        refuse(path, f"{len(columns):,} columns, at most {MOST_COLUMNS} are read")
    if reading.smaller_is_better:
        targets, target = [-y for y in targets], f"minus {target}"
    return make_column_table(name, ids, targets, columns, target, impute=reading.impute)


def _indicators(rows: Rows, heading: str) -> dict[str, list[float]]:
    """A column for each text under the heading: 1 where it stands, 0 elsewhere."""
    texts = ["" if is_missing(cell) else str(cell).strip() for cell in rows.column(heading)]
    words = sorted(set(texts) - {""})
    if len(words) > MOST_CATEGORIES:
        refuse(
            f"{rows.path}: column {heading}",
            f"{len(words):,} different texts, at most {MOST_CATEGORIES} become columns; a column of"
            " ids is named with --id",
        )
    return {f"{heading} {text}": [float(of == text) for of in texts] for text in words}


def _json_number(where: str, name: str, value: Any) -> float:
    if value is None:
        return math.nan
    if isinstance(value, str):
        with suppress(ValueError):
            value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        refuse(where, f"{name} = {shown(value)[:40]}, expected a number")
    return finite_or_nan(value)
