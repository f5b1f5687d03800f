"""Local processes: loky's executor, which joblib brings, kept between streams.

Large arrays of a payload are written to one file that every process maps, so they are in memory
once for any number of processes.

The driver handles Ctrl-C and SIGTERM for all of its workers. A driver that is killed cannot end
them, so each worker looks for it and ends when it is gone.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import warnings
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np
from joblib.externals.loky import cpu_count, get_reusable_executor, process_executor

from lpzero import files
from lpzero.parallel.tasks import (
    Answer,
    Bytes,
    Died,
    Done,
    Function,
    Payload,
    Raised,
    apply,
    keep_freed_memory,
)
from lpzero.parallel.workers import AHEAD, POLL_SECONDS

_IDLE_SECONDS = 300
_QUEUED_SECONDS = 1.0
_WATCH_SECONDS = 0.5
_SHARED_MEMORY = Path("/dev/shm")
_ORPHANED: list[Path] = []  # in a worker: the driver's folders, removed if it ends without doing so
# What limits the threads of each process, so that processes do not compete.
_LIBRARIES = ("OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "BLIS_NUM", "VECLIB_MAXIMUM", "NUMBA_NUM")


class LocalPool:
    """Some processes on this machine."""

    blames_one = False  # all processes end when one dies

    def __init__(self, jobs: int, payload: Payload) -> None:
        self._jobs = jobs
        self._running: dict[Future[Any], int] = {}
        self._finished: SimpleQueue[Future[Any]] = SimpleQueue()
        self._load = _Mapped.of(payload)

    def room(self) -> int:
        return AHEAD * self._jobs

    def submit(self, number: int, item: bytes) -> None:
        try:
            future = _executor(self._jobs).submit(apply, self._load, item)
        except BrokenProcessPool:  # it broke since it was asked for
            future = _executor(self._jobs).submit(apply, self._load, item)
        self._running[future] = number
        future.add_done_callback(self._finished.put)

    def answers(self) -> list[tuple[int, Answer]]:
        try:
            finished = [self._finished.get(timeout=POLL_SECONDS)]
        except Empty:
            return []
        while not self._finished.empty():
            finished.append(self._finished.get())
        return [(self._running.pop(future), _answer(future)) for future in finished]

    def close(self) -> None:
        if self._running:
            # loky's manager fails on an item that it has not queued when its workers are killed.
            end = time.monotonic() + _QUEUED_SECONDS
            while time.monotonic() < end and any(map(_is_pending, self._running)):
                time.sleep(0.005)
            _executor(self._jobs).shutdown(wait=True, kill_workers=True)
        self._load.remove()


def _executor(jobs: int) -> Any:
    """The executor of this process; a new one if the last one broke."""
    # loky warns of a worker that ends while items are given to it, as one that was idle may. It
    # does so in its manager thread, which dies if warnings are errors; the run would wait forever.
    warnings.filterwarnings("ignore", message="A worker stopped while some jobs were given")
    each = str(max(1, cpu_count() // jobs))
    names = [f"{library}_THREADS" for library in _LIBRARIES]
    return get_reusable_executor(
        max_workers=jobs,
        timeout=_IDLE_SECONDS,
        initializer=_prepare,
        initargs=(os.getpid(),),
        env={name: os.environ.get(name, each) for name in names},
    )


def _is_pending(future: Future[Any]) -> bool:
    return not (future.running() or future.done())


def _answer(future: Future[Any]) -> Answer:
    error = future.exception()
    if isinstance(error, BrokenProcessPool):
        return Died()
    if error is not None:
        raise error
    answer: Done | Raised = future.result()
    return answer


@dataclass(frozen=True, slots=True)
class _Mapped:
    """A payload whose arrays are in a file, one after another, each of so many bytes."""

    payload: Payload
    path: Path | None
    sizes: tuple[int, ...]

    @staticmethod
    def of(payload: Payload) -> _Mapped:
        sizes = tuple(array.nbytes for array in payload.arrays)
        if not sizes:
            return _Mapped(payload, None, ())
        path = _scratch_folder(sum(sizes)) / f"{payload.digest}.arrays"
        files.write_scratch(path, payload.arrays)
        return _Mapped(replace(payload, arrays=()), path, sizes)

    def __call__(self) -> Function:
        """Runs in a worker: the payload's function."""
        return self.payload.load(self._arrays)

    def _arrays(self) -> tuple[Bytes, ...]:
        if self.path is None:
            return ()
        _ORPHANED.append(self.path.parent)
        mapped = np.memmap(self.path, dtype=np.uint8, mode="r")
        ends = np.cumsum([0, *(_padded(size) for size in self.sizes)])
        return tuple(
            np.asarray(mapped[start : start + size])
            for start, size in zip(ends, self.sizes, strict=False)
        )

    def remove(self) -> None:
        if self.path is not None:
            shutil.rmtree(self.path.parent, ignore_errors=True)


def _padded(size: int) -> int:
    """The size in the file: every array starts at a multiple of 64 bytes, as in memory."""
    return -(-size // files.SCRATCH_ALIGNMENT) * files.SCRATCH_ALIGNMENT


def _scratch_folder(size: int) -> Path:
    """A new folder in shared memory if that has room for twice the size, else for temporary files.

    Processes map what is there; a file in shared memory is never written to a disk.
    """
    is_roomy = _SHARED_MEMORY.is_dir() and shutil.disk_usage(_SHARED_MEMORY).free > 2 * size
    folder = str(_SHARED_MEMORY) if is_roomy and os.access(_SHARED_MEMORY, os.W_OK) else None
    return Path(tempfile.mkdtemp(prefix="lpzero-", dir=folder))


def _prepare(driver: int) -> None:
    """Ignore Ctrl-C and SIGTERM, and end this process soon after the driver has ended."""
    # Where psutil is installed, loky replaces a worker that has grown by 300 MB since its first
    # item, as one does whose later networks are larger: each new one imports torch again. A search
    # had a new process for every third network.
    process_executor._MAX_MEMORY_LEAK_SIZE = sys.maxsize
    keep_freed_memory()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Thread(target=_watch, args=(driver,), daemon=True).start()


def _watch(driver: int) -> None:
    # The parent of an orphan is another process. Linux can send a signal instead
    # (PR_SET_PDEATHSIG), but sends it when the thread that started the worker ends.
    while os.getppid() == driver:
        time.sleep(_WATCH_SECONDS)
    for folder in _ORPHANED:
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)  # at once: nobody is left to read the result of the task
