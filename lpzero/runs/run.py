"""Opening a run's directory to read it: one function for every kind of run.

Nothing in the directory is changed, and nothing but JSON, CSV and checked arrays is read. A run
that is not finished, or has lost a file, gives what there is, with a remark on the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from lpzero import files
from lpzero.errors import InputError, RunError
from lpzero.runs.config import StoredConfig, read_config
from lpzero.runs.layout import CONFIG

# Kind of run -> the module whose `read(config)` opens it; imported when one is opened.
READERS = {
    "campaign": "lpzero.discover.record",
    "exhaustive run": "lpzero.exhaust.record",
    "search": "lpzero.search.record",
    "table build": "lpzero.training.record",
}


@dataclass(frozen=True, eq=False)
class Run:
    """What a run's directory holds; `result` is None if there is none that can be read."""

    config: StoredConfig
    result: Mapping[str, Any] | None
    remarks: list[str]

    @property
    def folder(self) -> Path:
        """The run's directory."""
        return self.config.folder

    @property
    def kind(self) -> str:
        """The kind of run, in words."""
        return self.config.kind

    @property
    def request(self) -> Mapping[str, Any]:
        """What was asked."""
        return self.config.request


def open_run(folder: str | Path) -> Run:
    """The run in the directory, of whatever kind; raises RunError if it holds none."""
    folder = Path(folder)
    if not folder.is_dir():
        raise RunError(f"{folder} is not a directory: expected the directory of a run")
    config = read_config(folder)
    if config is None:
        raise RunError(
            f"{folder} holds no run ({CONFIG}): start one with `lpzero discover TABLE --out DIR`"
        )
    if config.kind not in READERS:
        raise RunError(f"{folder} holds a {config.kind!r:.60}, which this version does not know")
    with understood(folder):
        run: Run = import_module(READERS[config.kind]).read(config)
        return run


@contextmanager
def understood(folder: Path) -> Iterator[None]:
    """Turn the errors of files that are whole but hold something unexpected into one InputError."""
    try:
        yield
    except InputError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"the files in {folder} do not hold what a run of this version writes"
            f" ({type(error).__name__}: {error}): they are of another version, or were changed"
        ) from error


def read_file(folder: Path, name: str, remarks: list[str]) -> dict[str, Any] | None:
    """The object in a file of the directory; a remark if there is a file without one."""
    path = folder / name
    found = files.read_object(path)
    if found is None and path.exists():
        remarks.append(f"{name} is broken and left out.")
    return found
