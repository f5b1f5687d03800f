"""A run's directory while a process works in it: locked, configured, with journal and checkpoint.

The files are named in `layout`; a kind of run may add files of its own.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from lpzero import files
from lpzero.errors import RunError
from lpzero.runs.config import SCHEMA, RunConfig, read_config, versions
from lpzero.runs.journal import Check, Journal
from lpzero.runs.layout import CHECKPOINT, CONFIG, JOURNAL, LOCK, RESULT, SCORES, TIMING


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """The directory for this process alone; raises RunError if another one holds it.

    The kernel releases the lock when its holder dies, however it dies; the process number in the
    file is for the message only.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise RunError(f"{folder} cannot be used: {error.strerror or error}") from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(handle, 32).decode(errors="replace").strip() or "unknown"
            raise RunError(
                f"{folder} is in use by process {holder}: wait for it, or choose another --out"
            ) from None
        with contextlib.suppress(OSError):  # a full disk is reported where it matters
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
        with contextlib.suppress(OSError):
            os.ftruncate(handle, 0)
    finally:
        os.close(handle)


class RunDirectory:
    """One run's directory; enter it to lock it, check its config and open its journal.

    `resume` allows a run that is already there, which must be the same run. `fits` tells which
    records the journal may hold; a kind of run without a journal has none. `remarks` say what had
    to be repaired or has changed.
    """

    def __init__(
        self, folder: Path, config: RunConfig, resume: bool, fits: Check | None = None
    ) -> None:
        self.folder, self.config, self.resume, self._fits = folder, config, resume, fits
        self.remarks: list[str] = []
        self._stack = contextlib.ExitStack()
        self._journal: Journal | None = None

    def __enter__(self) -> RunDirectory:
        with contextlib.ExitStack() as stack:
            stack.enter_context(locked(self.folder))
            self._claim()
            if self._fits is not None:
                self._journal = stack.enter_context(Journal(self.folder / JOURNAL, self._fits))
                if self._journal.torn:
                    torn = self._journal.torn
                    self.remarks.append(f"cut {torn} bytes of a torn line off the journal")
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def _claim(self) -> None:
        """Make an empty directory this run's, or check that it already is."""
        kind = self.config.kind
        found = read_config(self.folder)
        if found is not None:
            found.check_kind(kind)
            if not self.resume:
                raise RunError(
                    f"{self.folder} holds a {kind}: resume it with --resume, or choose another"
                    " --out"
                )
            found.check_same(self.config)
            self.remarks += found.changed_versions()
            return
        foreign = sorted(
            path.name
            for path in self.folder.iterdir()
            if path.name != LOCK and not files.is_temporary(path)
        )
        if foreign:
            raise RunError(f"{self.folder} holds {foreign[0]} and no {kind}: choose another --out")
        files.write_json(self.folder / CONFIG, self.config.to_json())

    @property
    def journal(self) -> Journal:
        """The open journal."""
        assert self._journal is not None, "enter the directory of a run with a journal first"
        return self._journal

    def write_checkpoint(self, value: Mapping[str, Any]) -> None:
        """Write where to resume; the journal reaches the disk first."""
        self.journal.sync()
        about = {"schema": SCHEMA, "versions": versions(), "config": self.config.hash}
        about["journal_lines"] = self.journal.n_lines
        files.write_json(self.folder / CHECKPOINT, {**about, **value}, indent=None)

    def read_checkpoint(self) -> dict[str, Any] | None:
        """The checkpoint; None if there is none that fits this run and its journal."""
        found = files.read_object(self.folder / CHECKPOINT)
        if found is None or found.get("schema") != SCHEMA:
            return None
        n_lines = found.get("journal_lines")
        if found.get("config") != self.config.hash or not isinstance(n_lines, int):
            return None
        return found if n_lines <= len(self.journal) else None

    def write_result(self, result: Any, seconds: float, scores: Any = None) -> None:
        """Write the timing, the scores if there are any, and the result last."""
        if self._journal is not None:
            self._journal.sync()
        files.write_json(self.folder / TIMING, {"seconds": round(seconds, 3)})
        if scores is None:
            (self.folder / SCORES).unlink(missing_ok=True)
        else:
            files.write_json(self.folder / SCORES, scores, indent=None)
        files.write_json(self.folder / RESULT, result)

    def write_json(self, name: str, value: Any) -> None:
        """Write a file of the run's own kind."""
        files.write_json(self.folder / name, value)

    def write_csv(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write rows of the run's own kind."""
        files.write_csv(self.folder / name, rows)
