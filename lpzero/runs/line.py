"""What lists say of a run in one line, and what the kinds of runs read for it.

Contents of files are checked here, not trusted: whatever a file holds, a line of text comes back.
Only small files and the ends of large ones are read.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lpzero.runs.config import StoredConfig
from lpzero.runs.layout import RESULT
from lpzero.runs.run import read_file

_TAIL, _SHORT = 1 << 16, 1 << 23  # bytes
FINISHED, STOPPED = "finished", "stopped"


@dataclass(frozen=True, slots=True)
class Line:
    """A run's state if no process works on it, and what the list says of it."""

    state: str
    table: str
    progress: str = ""
    best: str = ""


def line_of_result(config: StoredConfig) -> Line:
    """The line of any kind whose result is its last file, such as a ranking."""
    request = config.request
    table = tables(request) or str(request.get("table") or request.get("space") or "")
    is_finished = read_file(config, RESULT, []) is not None
    return Line(FINISHED if is_finished else STOPPED, table)


def tables(request: Mapping[str, Any]) -> str:
    """The names of the tables of a request."""
    entries = list_of(request.get("tables"))
    return ", ".join(str(entry.get("name")) for entry in entries if isinstance(entry, Mapping))


def test_rho(result: Mapping[str, Any]) -> str:
    """The winner's rho on the test rows, with its name."""
    return named_number("test rho", field(result, "best", "rho", "test"))


def list_of(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def field(value: Any, *path: str) -> Any:
    """The nested field; None where there is none."""
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def named_number(name: str, value: Any) -> str:
    """A number with its name; nothing if it is not a number."""
    with suppress(TypeError, ValueError):
        number = float(value)
        return f"{name} {number:.3f}" if math.isfinite(number) else ""
    return ""


def whole(value: Any, otherwise: int = 0) -> int:
    """The value if it is a whole number of a usual size."""
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


def last_record(path: Path) -> dict[str, Any]:
    """The last whole line of a journal; empty if there is none."""
    for line in reversed(_tail(path).splitlines(keepends=True)):
        if line.endswith(b"\n"):
            with suppress(ValueError, RecursionError):
                found = json.loads(line)
                return found if isinstance(found, dict) else {}
    return {}


def last_row(path: Path) -> dict[str, str | None]:
    """The last row of a CSV file, by column; empty if there is none."""
    with suppress(OSError, ValueError, csv.Error):
        with path.open("rb") as file:
            header = file.readline(4096).decode()
        rows = _tail(path).decode(errors="replace").splitlines()
        if len(rows) > 1:
            return next(csv.DictReader(io.StringIO(f"{header}{rows[-1]}\n")), {})
    return {}


def n_lines(path: Path) -> int:
    """The number of lines of a short journal, such as that of a table build."""
    return _tail(path, _SHORT).count(b"\n")


def n_files(folder: Path, ending: str) -> int:
    """The number of files in the folder with that ending."""
    try:
        return sum(name.endswith(ending) for name in os.listdir(folder))
    except OSError:
        return 0
