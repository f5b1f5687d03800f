"""What the list says of each kind of run: its table, whether it is finished, progress, the best.

Contents of files are checked here, not trusted: whatever a file holds, a line of text comes back.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lpzero.runs.config import StoredConfig
from lpzero.runs.layout import HISTORY, JOURNAL, RESULT, SHARDS, TABLE
from lpzero.runs.run import read_file

_TAIL, _SHORT = 1 << 16, 1 << 23  # bytes
FINISHED, STOPPED = "finished", "stopped"
SEARCHED = "no result yet"  # every generation is done: its winner is being judged, or never was


@dataclass(frozen=True, slots=True)
class Line:
    """A run's state if no process works on it, and what the list says of it."""

    state: str
    table: str
    progress: str = ""
    best: str = ""


def describe(config: StoredConfig) -> Line:
    """What the list says of the run with that config."""
    return _KINDS.get(config.kind, _other)(config)


def _campaign(config: StoredConfig) -> Line:
    result, table = read_file(config, RESULT, []), _tables(config.request)
    last = _last_record(config.folder / JOURNAL)
    tried = _whole(last.get("id"), -1) + 1
    generation, asked = last.get("generation"), _field(config.request, "settings", "generations")
    progress = f"generation {_whole(generation):,} of {_whole(asked):,}" if last else "generation -"
    if result is not None and result.get("tried") == tried:
        return Line(FINISHED, table, progress, _test_rho(result))
    row = _last_row(config.folder / HISTORY)
    state = SEARCHED if last and _whole(generation) >= _whole(asked, 1) else STOPPED
    return Line(state, table, progress, _value("fitness", row.get("fitness")))


def _exhaustive(config: StoredConfig) -> Line:
    result, table = read_file(config, RESULT, []), _tables(config.request)
    progress = f"{_count(config.folder / SHARDS, '.npz'):,} shards"
    if result is None:
        return Line(STOPPED, table, progress)
    return Line(FINISHED, table, progress, _test_rho(result))


def _search(config: StoredConfig) -> Line:
    result, request = read_file(config, RESULT, []), config.request
    table = str(request.get("table") or request.get("space") or "")
    if result is None:
        n_facts = _whole(_last_record(config.folder / JOURNAL).get("n"), -1) + 1
        return Line(STOPPED, table, f"{n_facts:,} facts")
    progress = (
        f"{_whole(result.get('scored')):,} scored, {_whole(result.get('evaluations')):,} evaluated"
    )
    best = _field(result, "best", "target")
    is_target = best is not None
    shown = best if is_target else _field(result, "best", "score")
    return Line(FINISHED, table, progress, _value("target" if is_target else "score", shown))


def _table_build(config: StoredConfig) -> Line:
    name = str(_field(config.request, "plan", "name") or "")
    is_finished = (config.folder / TABLE).is_file()
    done = _n_lines(config.folder / JOURNAL)
    return Line(FINISHED if is_finished else STOPPED, name, f"{done:,} trainings")


def _comparison(config: StoredConfig) -> Line:
    """Of a comparison, which may be begun again with more arms and seeds than its result has."""
    arms = _list(config.request.get("arms"))
    rows = _list((read_file(config, RESULT, []) or {}).get("rows"))
    asked, done = (
        len(arms) * _whole(config.request.get("seeds")),
        sum(_whole(_field(row, "seeds")) for row in rows),
    )
    space = str(_field(arms[0], "table") or _field(arms[0], "space") or "") if arms else ""
    progress = f"{len(arms):,} arms, {asked:,} searches"
    return Line(FINISHED if rows and done == asked else STOPPED, space, progress)


def _other(config: StoredConfig) -> Line:
    """Of any kind whose result is its last file, such as a ranking."""
    request = config.request
    table = _tables(request) or str(request.get("table") or request.get("space") or "")
    is_finished = read_file(config, RESULT, []) is not None
    return Line(FINISHED if is_finished else STOPPED, table)


_KINDS: Mapping[str, Callable[[StoredConfig], Line]] = {
    "campaign": _campaign,
    "exhaustive run": _exhaustive,
    "search": _search,
    "comparison": _comparison,
    "table build": _table_build,
}


def _tables(request: Mapping[str, Any]) -> str:
    tables = request.get("tables")
    entries = tables if isinstance(tables, list) else []
    return ", ".join(str(entry.get("name")) for entry in entries if isinstance(entry, Mapping))


def _test_rho(result: Mapping[str, Any]) -> str:
    return _value("test rho", _field(result, "best", "rho", "test"))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _field(value: Any, *path: str) -> Any:
    """The nested field; None where there is none."""
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _value(name: str, value: Any) -> str:
    """A number with its name; nothing if it is not a number."""
    with suppress(TypeError, ValueError):
        number = float(value)
        return f"{name} {number:.3f}" if math.isfinite(number) else ""
    return ""


def _whole(value: Any, otherwise: int = 0) -> int:
    return value if type(value) is int and abs(value) < 10**12 else otherwise


def _tail(path: Path, most: int = _TAIL) -> bytes:
    """The last bytes of the file, none if there is none."""
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            return os.pread(handle, most, max(0, os.fstat(handle).st_size - most))
        finally:
            os.close(handle)
    return b""


def _last_record(path: Path) -> dict[str, Any]:
    """The last whole line of a journal; empty if there is none."""
    for line in reversed(_tail(path).splitlines(keepends=True)):
        if line.endswith(b"\n"):
            with suppress(ValueError, RecursionError):
                found = json.loads(line)
                return found if isinstance(found, dict) else {}
    return {}


def _last_row(path: Path) -> dict[str, str | None]:
    """The last row of a CSV file, by column; empty if there is none."""
    with suppress(OSError, ValueError, csv.Error):
        with path.open("rb") as file:
            header = file.readline(4096).decode()
        rows = _tail(path).decode(errors="replace").splitlines()
        if len(rows) > 1:
            return next(csv.DictReader(io.StringIO(f"{header}{rows[-1]}\n")), {})
    return {}


def _n_lines(path: Path) -> int:
    """The number of lines of a short journal, such as that of a table build."""
    return _tail(path, _SHORT).count(b"\n")


def _count(folder: Path, ending: str) -> int:
    try:
        return sum(name.endswith(ending) for name in os.listdir(folder))
    except OSError:
        return 0
