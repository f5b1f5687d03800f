"""Reading a run's directory: one function for every kind of run.

Nothing in the directory is changed, and only JSON, CSV and verified arrays are read. If a run is
unfinished or a file is missing, the rest is read and a remark describes what is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lpzero import seals
from lpzero.errors import EnvelopeError, InputError, RunError
from lpzero.runs.command import kind_of, stored
from lpzero.runs.config import StoredConfig, read_config
from lpzero.runs.layout import CONFIG, place


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
        command = stored(self.config)
        if command is None:
            return None
        try:
            return [*command.words(), "--out", str(self.folder)]
        except InputError:  # options of another version
            return None


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
    kind = kind_of(config)
    with report_unexpected_content(folder):
        run: Run = kind.read(config)
        return run


@contextmanager
def report_unexpected_content(folder: Path) -> Iterator[None]:
    """Raise InputError for the errors caused by readable files with unexpected content."""
    try:
        yield
    except InputError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"the files in {folder} are not those of a run of this version"
            f" ({type(error).__name__}: {error}): another version wrote them, or they were edited"
        ) from error


def read_file(config: StoredConfig, name: str, remarks: list[str]) -> dict[str, Any] | None:
    """The object in a sealed file of the run; None, with a remark, if it is not as written."""
    try:
        return seals.read_sealed(config.folder / name, place(config.hash, name))
    except FileNotFoundError:
        return None
    except EnvelopeError as error:
        remarks.append(f"{name} is broken and was ignored: {error}.")
        return None
