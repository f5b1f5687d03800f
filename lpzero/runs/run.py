"""Reading the directory of any kind of run: as a whole, while it works, or as a line of a list.

Nothing in the directory is changed or locked, and only JSON, CSV and verified arrays are read. If a
run is unfinished or a file is missing, the rest is read and a remark describes what is missing. For
a line only small files and the ends of large ones are read, and their contents are checked, not
trusted: whatever a file holds, a line of text comes back.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from lpzero.errors import EnvelopeError, InputError, RunError
from lpzero.files import read_sealed
from lpzero.runs.config import VERBS, StoredConfig, read_config, stored_command
from lpzero.runs.layout import (
    CONFIG,
    HALL,
    HISTORY,
    JOURNAL,
    RESULT,
    SCORES,
    SHARDS,
    TABLE,
    place,
)
from spaces.untrusted import open_regular, read_tail
from spaces.user_modules import UserCodeError

_TAIL, _SHORT = 1 << 16, 1 << 23  # bytes
_FILES = (JOURNAL, RESULT, SCORES, HALL, HISTORY, SHARDS, TABLE)
FINISHED, STOPPED = "finished", "stopped"
Stamp = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, eq=False)
class Run:
    """The content of a run's directory; `result` is None if it is missing or unreadable."""

    config: StoredConfig
    result: Mapping[str, Any] | None
    remarks: list[str]

    @property
    def folder(self) -> Path:
        """The run's directory."""
        return self.config.folder

    @property
    def kind(self) -> str:
        """The kind of run, such as "campaign"."""
        return self.config.kind

    @property
    def request(self) -> Mapping[str, Any]:
        """The request that started the run."""
        return self.config.request

    @property
    def command(self) -> list[str] | None:
        """The command line that repeats the run in its directory; None if it was not stored."""
        command = stored_command(self.config)
        if command is None:
            return None
        try:
            return [*command.words(), "--out", str(self.folder)]
        except InputError:  # options of another version
            return None

    @property
    def code(self) -> list[str]:
        """The files, modules and addresses of the Python code that the command line runs."""
        command = stored_command(self.config)
        return [] if command is None else command.code()


def open_run(folder: str | Path) -> Run:
    """The run in the directory, of any kind; raise RunError if there is none."""
    folder = Path(folder)
    if not folder.is_dir():
        raise RunError(f"{folder} is not a directory: expected the directory of a run")
    config = read_config(folder)
    if config is None:
        raise RunError(
            f"{folder} has no run ({CONFIG}): start one with `lpzero discover TABLE --out DIR`"
        )
    kind_of(config)
    with report_unexpected_content(folder):
        return read_run(config)


@contextmanager
def report_unexpected_content(folder: Path) -> Iterator[None]:
    """Raise InputError for the errors caused by readable files with unexpected content."""
    try:
        yield
    except (InputError, UserCodeError):  # the latter says which option to give
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise InputError(
            f"the files in {folder} are not those of a run of this version"
            f" ({type(error).__name__}: {error}): another version wrote them, or they were edited"
        ) from error


def read_file(config: StoredConfig, name: str, remarks: list[str]) -> dict[str, Any] | None:
    """The object in a sealed file of the run; None, with a remark, if it is not as written."""
    try:
        return read_sealed(config.folder / name, place(config.hash, name))
    except FileNotFoundError:
        return None
    except EnvelopeError as error:
        remarks.append(f"{name} is broken and was ignored: {error}.")
        return None


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


def verdict_in_brief(result: Mapping[str, Any]) -> str:
    """The winner's rho on the test rows, and whether it is ahead of its rival."""
    rho = named_number("test rho", nested(result, "best", "rho", "test"))
    outcome, rival = (nested(result, "difference", name) for name in ("outcome", "against"))
    is_said = rho and isinstance(outcome, str) and isinstance(rival, str)
    return f"{rho}; {rival}: {outcome}" if is_said else rho


def list_of(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def nested(value: Any, *path: str) -> Any:
    """The nested field; None where there is none."""
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def named_number(name: str, value: Any) -> str:
    """A number with its name; nothing if it is not a number."""
    with suppress(TypeError, ValueError, OverflowError):
        number = float(value)
        return f"{name} {number:.3f}" if math.isfinite(number) else ""
    return ""


def whole(value: Any, otherwise: int = 0) -> int:
    """The value if it is a whole number of a usual size."""
    return value if type(value) is int and abs(value) < 10**12 else otherwise


def _tail(path: Path, most: int = _TAIL) -> bytes:
    """The last bytes of the file, none if there is none."""
    with suppress(OSError):
        return read_tail(path, most)
    return b""


def last_record(path: Path) -> dict[str, Any]:
    """The last whole line of a journal; empty if there is none."""
    for line in reversed(_tail(path).splitlines(keepends=True)):
        if line.endswith(b"\n"):
            with suppress(ValueError, RecursionError):
                record = json.loads(line)
                return record if isinstance(record, dict) else {}
    return {}


def last_row(path: Path) -> dict[str, str | None]:
    """The last row of a CSV file, by column; empty if there is none."""
    with suppress(OSError, ValueError, csv.Error):
        with open_regular(path, follow_links=False) as file:
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


@dataclass(frozen=True, slots=True)
class Now:
    """How far a run is: facts by name, and the best so far where the run's own page has it not.

    `history` are rows with `evaluated` and `fitness`, `counted` and `measured` say of what.
    """

    facts: Mapping[str, str] = field(default_factory=dict)
    history: Sequence[Mapping[str, Any]] = ()
    counted: str = ""
    measured: str = ""


def stamp(folder: Path, names: Sequence[str] = _FILES) -> Stamp:
    """Inode, size and time of the files of the run: another one when something was written."""
    return tuple(_stamp(folder / name) for name in names)


def _stamp(path: Path) -> tuple[int, int, int]:
    try:
        about = os.stat(path, follow_symlinks=False)
    except OSError:
        return 0, 0, 0
    return about.st_ino, about.st_size, about.st_mtime_ns


class LiveRun:
    """A run that may still grow: it is read as a whole whenever one of its files has changed.

    `share` of its journal was read, 1.0 if all of it.
    """

    share = 1.0

    def __init__(self, config: StoredConfig) -> None:
        self.config = config
        self._stamp: Stamp | None = None
        self._run: Run | None = None

    def update(self, seconds: float) -> Run | None:
        """The run with what is new, after about that many seconds at most.

        The same object while nothing has changed; None if there is nothing to show but `now`.
        """
        now = stamp(self.config.folder)
        if now != self._stamp:
            with report_unexpected_content(self.config.folder):
                self._run = self._read()
            self._stamp = now
        return self._run

    def _read(self) -> Run | None:
        return read_run(self.config)

    def now(self) -> Now:
        """How far the run was when it was last read: nothing beyond what the run itself says."""
        return Now()


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of run: where its functions are, as MODULE:NAME; they are imported when they are used.

    `read(config)` gives the run, `page(run, beside, ranking, transfer)` the content of its page,
    `follow(config)` the run while it works, `line(config)` what a list says of it.
    """

    name: str
    read: str
    page: str
    follow: str = f"{__name__}:LiveRun"
    line: str = f"{__name__}:line_of_result"


def kind_of(config: StoredConfig) -> Kind:
    """The kind of a stored run, as its verb declares it; raise RunError if it is unknown."""
    kind: Kind | None = import_module(VERBS).kinds().get(config.kind)
    if kind is None:
        raise RunError(
            f"{config.folder} holds a {config.kind!r:.60}, which this version does not know"
        )
    return kind


def read_run(config: StoredConfig) -> Run:
    """The run with that config."""
    run: Run = resolve_name(kind_of(config).read)(config)
    return run


def follow_run(config: StoredConfig) -> LiveRun:
    """The run with that config while it works."""
    live: LiveRun = resolve_name(kind_of(config).follow)(config)
    return live


def line_of(config: StoredConfig) -> Line:
    """What a list says of the run with that config."""
    line: Line = resolve_name(kind_of(config).line)(config)
    return line
