"""One command in a process of its own, which may be killed or get errors on the way."""

from __future__ import annotations

import builtins
import contextlib
import io
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lpzero import files
from lpzero.cli.main import run
from tests.forks import forget_workers

HANGS_AFTER = 180.0  # seconds
BUSY = 3600.0  # of a test, which only something that never ends may fail for its time


@dataclass(frozen=True)
class Kill:
    """When the process dies: after some seconds, or at the n-th step of writing files.

    `is_worker` if one of its workers dies then, and not the process itself.
    """

    seconds: float | None = None
    step: int | None = None
    share: float = 0.5  # of the bytes being appended at that step
    is_worker: bool = False


@dataclass(frozen=True)
class Failure:
    """The n-th call of `FailingCalls` on files below the folder fails once, with this errno."""

    call: int
    errno: int
    folder: Path


@dataclass(frozen=True)
class Attempt:
    """How a command ended; the code is None if it hung, negative if a signal ended it.

    `steps` are those of writing files: calls if one of them was to fail, else those of `Kill`.
    """

    code: int | None
    out: str
    err: str
    seconds: float
    steps: int
    is_worker_killed: bool

    @property
    def notes(self) -> list[str]:
        return [line for line in self.err.splitlines() if line.startswith("note: ")]


def attempt(
    arguments: Sequence[str],
    scratch: Path,
    fault: Kill | Failure | None = None,
    act: Callable[[list[str]], int] = run,
    limit: float = HANGS_AFTER,
) -> Attempt:
    """Run the command in a fork of this process, which has imported everything already.

    `act` gives the exit code; without it the arguments are a command of `lpzero`.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    out, err, steps = (scratch / name for name in ("out", "err", "steps"))
    start = time.monotonic()
    process = os.fork()
    if process == 0:
        _child(act, arguments, out, err, steps, fault)
    code, is_worker_killed = _wait(process, fault, limit)
    seconds = time.monotonic() - start
    texts = [path.read_text(errors="replace") if path.exists() else "" for path in (out, err)]
    n_steps = int(steps.read_text() or 0) if steps.exists() else 0
    for path in (out, err, steps):
        path.unlink(missing_ok=True)
    return Attempt(code, texts[0], texts[1], seconds, n_steps, is_worker_killed)


def _wait(process: int, fault: Kill | Failure | None, patience: float) -> tuple[int | None, bool]:
    """The exit code of the process, and whether a worker of it was killed."""
    kill = fault if isinstance(fault, Kill) and fault.seconds is not None else None
    start, limit, is_killed = time.monotonic(), patience, False
    if kill is not None and kill.seconds is not None:
        limit = kill.seconds
    while True:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status), is_killed
        if time.monotonic() - start >= limit:
            if kill is None or not kill.is_worker:
                break
            is_killed, kill, limit = _kill_worker(process), None, patience
        time.sleep(0.005)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    return (None if kill is None else os.waitstatus_to_exitcode(status)), is_killed


def _kill_worker(process: int) -> bool:
    """End one of the workers of the process; whether it had started any."""
    listed = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii")
    for child in map(int, listed.split()):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if b"popen_loky" in Path(f"/proc/{child}/cmdline").read_bytes():
                os.kill(child, signal.SIGKILL)
                return True
    return False


def _child(
    act: Callable[[list[str]], int],
    arguments: Sequence[str],
    out: Path,
    err: Path,
    steps: Path,
    fault: Kill | Failure | None,
) -> None:
    code = 99
    try:
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        for number, path in ((1, out), (2, err)):
            os.dup2(os.open(path, flags), number)
        written = os.open(steps, flags)
        sys.stdout = os.fdopen(1, "w", buffering=1)
        sys.stderr = os.fdopen(2, "w", buffering=1)
        forget_workers()
        count = FailingCalls(fault) if isinstance(fault, Failure) else _Steps(fault)
        code = act(list(arguments))
        sys.stdout.flush()
        sys.stderr.flush()
        os.write(written, str(count.n).encode())
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


class _Steps:
    """Counts the steps of writing files, and ends the process at the one that was chosen.

    An atomic write has two steps, before and after the rename; an append has one, in its middle.
    """

    def __init__(self, kill: Kill | None) -> None:
        self.n = 0
        self._kill = kill or Kill()
        replace, append = os.replace, files.AppendFile.append

        def counted_replace(source: Any, target: Any, **options: Any) -> None:
            self._step()
            replace(source, target, **options)
            self._step()

        def counted_append(file: files.AppendFile, data: bytes) -> None:
            self._step(lambda: append(file, data[: int(self._kill.share * len(data))]))
            append(file, data)

        os.replace = counted_replace
        files.AppendFile.append = counted_append  # type: ignore[method-assign]

    def _step(self, before_death: Callable[[], None] = lambda: None) -> None:
        self.n += 1
        if self.n == self._kill.step:
            before_death()
            os.kill(os.getpid(), signal.SIGKILL)


class FailingCalls:
    """Counts the calls that open, write, flush, rename or remove files and folders.

    The chosen one fails. Stands in for functions of `os`, and for `open`.
    """

    _COUNTED = ("open", "write", "pread", "fsync", "ftruncate", "replace", "mkdir", "unlink")

    def __init__(self, failure: Failure) -> None:
        self.n = 0
        self._failure = failure
        self._handles: set[int] = set()
        self._replaced = [(os, name, getattr(os, name)) for name in self._COUNTED]
        self._replaced += [(module, "open", open) for module in (builtins, io)]
        for module, name, function in self._replaced:
            setattr(module, name, self._counted(function))

    def stop(self) -> None:
        """Let calls work as before."""
        for module, name, function in self._replaced:
            setattr(module, name, function)

    def _counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(subject: Any, *arguments: Any, **options: Any) -> Any:
            is_path = not isinstance(subject, int)
            if not (self._is_below(subject) if is_path else subject in self._handles):
                return function(subject, *arguments, **options)
            self.n += 1
            if self.n == self._failure.call:
                number = self._failure.errno
                raise OSError(number, os.strerror(number), *([subject] if is_path else []))
            result = function(subject, *arguments, **options)
            if is_path and function.__name__ == "open":
                self._handles.add(result if isinstance(result, int) else result.fileno())
            return result

        return call

    def _is_below(self, path: Any) -> bool:
        return os.path.abspath(os.fsdecode(path)).startswith(str(self._failure.folder))
