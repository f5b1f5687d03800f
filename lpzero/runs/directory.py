"""A run's directory during the run: lock, config, journal, checkpoint and result.

`layout` lists the file names; a kind of run may add its own files.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from lpzero import files
from lpzero.errors import EnvelopeError, RunError
from lpzero.runs.config import (
    SCHEMA,
    RunConfig,
    StoredConfig,
    read_config,
    versions,
    with_article,
    write_config,
)
from lpzero.runs.journal import Check, Journal
from lpzero.runs.layout import (
    CHECKPOINT,
    DIGESTED,
    JOURNAL,
    LOCK,
    RESULT,
    SCORES,
    TIMING,
    place,
)
from spaces.untrusted import UntrustedError, pieces_of, read_regular

logger = logging.getLogger(__name__)


@contextlib.contextmanager
def locked(folder: Path, lock: bool = True) -> Iterator[None]:
    """Lock the directory; raise RunError if another process has locked it.

    The kernel releases the lock when the process ends for any reason; the process number in the
    file is only for the message. Without `lock` the directory is only created: some network file
    systems have no locks.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = files.open_in_place(folder / LOCK)
    except OSError as error:
        raise RunError(f"{folder} cannot be used: {error.strerror or error}") from error
    try:
        if lock:
            _take(handle, folder)
        with contextlib.suppress(OSError):  # a full disk is reported by the first real write
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
        with contextlib.suppress(OSError):
            os.ftruncate(handle, 0)
    finally:
        os.close(handle)


def _take(handle: int, folder: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(handle, 32).decode(errors="replace").strip() or "unknown"
        raise RunError(
            f"{folder} is in use by process {holder}: wait for it, or choose another --out"
        ) from None
    except OSError as error:
        raise RunError(
            f"{folder} is on a file system that cannot lock files ({error.strerror}): choose"
            " another --out, or give --no-lock and make sure that no other process uses it"
        ) from None


class RunDirectory:
    """A context manager that locks a run's directory, checks its config and opens its journal.

    `resume` accepts an existing run in the directory if its config is the same. `fits` checks the
    journal's records; None means that this kind of run has no journal. Without `lock` nothing
    prevents a second process from using the directory. `remarks` report repairs, and versions that
    have changed.
    """

    def __init__(
        self,
        folder: Path,
        config: RunConfig,
        resume: bool,
        fits: Check | None = None,
        lock: bool = True,
    ) -> None:
        self.folder, self.config, self.resume, self._fits = folder, config, resume, fits
        self.lock = lock
        self.remarks: list[str] = []
        self._stack = contextlib.ExitStack()
        self._journal: Journal | None = None

    def __enter__(self) -> RunDirectory:
        with contextlib.ExitStack() as stack:
            self.stored()  # a directory that is refused is left as it is
            stack.enter_context(locked(self.folder, self.lock))
            self._claim()
            files.sweep(self.folder.rglob(f".*{files.TEMPORARY}"))
            if self._fits is not None:
                journal = Journal(self.folder / JOURNAL, self._fits, self._place(JOURNAL))
                self._journal = stack.enter_context(journal)
                if journal.remark:
                    self.remarks.append(journal.remark)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def log_remarks(self) -> None:
        """Log the remarks, for callers that do not return them."""
        for remark in self.remarks:
            logger.warning("%s", remark)

    def _claim(self) -> None:
        """Write the config with the running command, or update the command in the stored one."""
        stored = self.stored()
        if stored is not None:
            self.remarks += stored.changed_versions()
        write_config(self.folder, stored or self.config)

    def stored(self) -> StoredConfig | None:
        """The config in the directory, None if it is new; raise RunError if it cannot be used."""
        try:
            stored = read_config(self.folder)
            foreign = None if stored is not None else foreign_name(self.folder)
        except OSError as error:
            raise RunError(f"{self.folder} cannot be used: {error.strerror or error}") from error
        kind = self.config.kind
        if foreign is not None:
            raise RunError(f"{self.folder} contains {foreign} but no {kind}: choose another --out")
        if stored is None:
            return None
        stored.check_kind(kind)
        if not self.resume:
            raise RunError(
                f"{self.folder} holds {with_article(kind)}: resume it with --resume, or choose"
                " another --out"
            )
        stored.check_same(self.config)
        return stored

    def _place(self, name: str) -> str:
        return place(self.config.hash, name)

    @property
    def journal(self) -> Journal:
        """The open journal."""
        assert self._journal is not None, "enter the directory of a run with a journal first"
        return self._journal

    def write_checkpoint(self, value: Mapping[str, Any]) -> None:
        """Write a checkpoint to resume from, after flushing the journal to the disk."""
        self.journal.sync()
        about = {"schema": SCHEMA, "versions": versions(), "config": self.config.hash}
        lines = self.journal.position
        about |= {"journal_lines": lines, "journal_seal": self.journal.seal(lines)}
        self._write_sealed(CHECKPOINT, {**about, **value}, indent=None)

    def read_checkpoint(self) -> dict[str, Any] | None:
        """The checkpoint; None if it is missing or does not match this run and its journal."""
        path = self.folder / CHECKPOINT
        try:
            checkpoint = files.read_sealed(path, self._place(CHECKPOINT))
        except FileNotFoundError:
            return None
        except EnvelopeError as error:
            self.remarks.append(f"{path} is ignored: {error}")
            return None
        lines = checkpoint.get("journal_lines")
        if checkpoint.get("schema") != SCHEMA or not isinstance(lines, int):
            return None
        is_covered = lines <= len(self.journal)
        return (
            checkpoint
            if is_covered and self.journal.seal(lines) == checkpoint["journal_seal"]
            else None
        )

    def write_result(self, result: Mapping[str, Any], seconds: float, scores: Any = None) -> None:
        """Write the timing, the scores if there are any, and the result last.

        The result has the digests of the files without a seal that readers use.
        """
        if self._journal is not None:
            self._journal.sync()
        files.write_json(self.folder / TIMING, {"seconds": round(seconds, 3)})
        self.write_sealed(SCORES, scores)
        digests = {name: digest for name in DIGESTED if (digest := file_digest(self.folder / name))}
        about = {"digests": digests} if digests else {}
        self._write_sealed(RESULT, {**result, **about})

    def _write_sealed(self, name: str, value: Mapping[str, Any], indent: int | None = 1) -> None:
        files.write_sealed(self.folder / name, self._place(name), value, indent)

    def write_sealed(self, name: str, value: Mapping[str, Any] | None) -> None:
        """Write an additional sealed file of this kind of run; None removes it."""
        if value is None:
            (self.folder / name).unlink(missing_ok=True)
        else:
            self._write_sealed(name, value, indent=None)

    def write_json(self, name: str, value: Any) -> None:
        """Write an additional JSON file of this kind of run."""
        files.write_json(self.folder / name, value)

    def write_csv(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write an additional CSV file of this kind of run."""
        files.write_csv(self.folder / name, rows)


def foreign_name(folder: Path) -> str | None:
    """The first name in the folder that a run which has just begun would not have; None if none."""
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return None
    for name in names:
        path = folder / name
        if not files.is_temporary(path) and not (name == LOCK and _is_lock(path)):
            return name
    return None


def _is_lock(path: Path) -> bool:
    """Whether the file may be the lock of a run: empty, or a process number."""
    try:
        return not read_regular(path, 32, follow_links=False).strip(b"0123456789\n")
    except UntrustedError:
        return False


def file_digest(path: Path) -> str | None:
    """The SHA-256 of the file's bytes, in hexadecimal; None if there is no such file."""
    digest = hashlib.sha256()
    try:
        for piece in pieces_of(path, follow_links=False):
            digest.update(piece)
    except (FileNotFoundError, UntrustedError):
        return None
    return digest.hexdigest()
