"""One way to spread work: a function over items, through joblib, results as they come.

Local processes by default; the same call runs on a Dask or Ray cluster through joblib's
registered backends. A worker that dies does not end the run: its items are tried again, then
one at a time, so that only the item that kills its worker is given up.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import joblib
from joblib.externals.loky.process_executor import BrokenProcessPool

from lpzero.errors import InputError

T = TypeVar("T")
R = TypeVar("R")
BACKENDS = ("loky", "dask", "ray")


@dataclass(frozen=True, slots=True)
class Workers:
    """Where work runs: processes here, or a cluster's workers at the scheduler's address."""

    jobs: int = 1
    backend: str = "loky"
    scheduler: str | None = None

    def __post_init__(self) -> None:
        if self.backend not in BACKENDS:
            known = ", ".join(BACKENDS)
            raise InputError(f"backend {self.backend!r} is unknown; use one of {known}")
        if self.jobs < 1:
            raise InputError(f"{self.jobs} jobs were asked for; expected at least 1")
        if self.backend == "dask" and self.scheduler is None:
            raise InputError("backend dask needs a scheduler: give its address, tcp://HOST:PORT")


@dataclass(frozen=True, slots=True)
class Lost:
    """In place of a result: the worker died whenever it worked on this item."""

    reason: str = "its worker process died each time, probably out of memory"


def stream(
    function: Callable[[T], R],
    items: Sequence[T],
    workers: Workers | None = None,
    label: str | None = None,
) -> Generator[tuple[int, R | Lost], None, None]:
    """(index, function(item)) in the order of completion; a bar on stderr when there is a label.

    An exception of the function ends the stream. Close the iterator to stop the workers.
    """
    workers = workers or Workers()
    pending = dict(enumerate(items))
    with progress(label, len(items)) as advance, _backend(workers) as lost_errors:
        for group in _attempts(pending):
            try:
                with closing(_run(function, group, workers)) as results:
                    for index, result in results:
                        pending.pop(index)
                        advance()
                        yield index, result
            except lost_errors:
                if len(group) == 1:
                    [index] = group
                    pending.pop(index)
                    advance()
                    yield index, Lost()


def _attempts(pending: dict[int, T]) -> Iterator[dict[int, T]]:
    """All items; what is left of them, once more; then each on its own."""
    for _ in range(2):
        if pending:
            yield dict(pending)
    for index, item in list(pending.items()):
        yield {index: item}


def _run(
    function: Callable[[T], R], items: Mapping[int, T], workers: Workers
) -> Generator[tuple[int, R], None, None]:
    task = joblib.delayed(_Task(function, os.getpid()))
    parallel = joblib.Parallel(n_jobs=workers.jobs, batch_size=1, return_as="generator_unordered")
    yield from parallel(task(index, item) for index, item in items.items())


@dataclass(frozen=True, slots=True)
class _Task(Generic[T, R]):
    """The function, told which item it works on; Ctrl-C is for the process that started it."""

    function: Callable[[T], R]
    driver: int

    def __call__(self, index: int, item: T) -> tuple[int, R]:
        in_main_thread = threading.current_thread() is threading.main_thread()
        if os.getpid() != self.driver and in_main_thread:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        return index, self.function(item)


@contextmanager
def _backend(workers: Workers) -> Iterator[tuple[type[BaseException], ...]]:
    """joblib set to the backend inside; gives the errors that mean a lost worker."""
    with ExitStack() as stack:
        lost: tuple[type[BaseException], ...] = (BrokenProcessPool,)
        options: dict[str, Any] = {}
        if workers.backend == "dask":
            options, lost = _dask(workers, stack)
        if workers.backend == "ray":
            lost = _ray(workers)
        # One job runs in this very process.
        if workers.backend != "loky" or workers.jobs > 1:
            stack.enter_context(joblib.parallel_config(backend=workers.backend, **options))
        yield lost


def _dask(
    workers: Workers, stack: ExitStack
) -> tuple[dict[str, Any], tuple[type[BaseException], ...]]:
    try:
        from distributed import Client, KilledWorker
    except ImportError:
        raise InputError("backend dask is not installed: pip install 'lpzero[dask]'") from None
    try:
        client = stack.enter_context(Client(workers.scheduler, timeout=10, set_as_default=False))
    except (OSError, ValueError) as error:
        raise InputError(f"no Dask scheduler at {workers.scheduler}: {error}") from error
    return {"client": client}, (KilledWorker,)


def _ray(workers: Workers) -> tuple[type[BaseException], ...]:
    try:
        import ray
        from ray.util.joblib import register_ray
    except ImportError:
        raise InputError("backend ray is not installed: pip install 'lpzero[ray]'") from None
    if not ray.is_initialized():
        ray.init(address=workers.scheduler)
    register_ray()
    return (ray.exceptions.WorkerCrashedError,)


@contextmanager
def progress(label: str | None, total: int) -> Iterator[Callable[[], None]]:
    """A function to call after each item; it moves a bar with rate and time left on stderr."""
    if label is None:
        yield lambda: None
        return
    from rich import progress as bars
    from rich.console import Console

    class Rate(bars.ProgressColumn):
        def render(self, task: bars.Task) -> str:
            return f"{task.speed:.1f}/s" if task.speed else "-/s"

    columns = (
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        Rate(),
        bars.TimeRemainingColumn(),
    )
    with bars.Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(label, total=total)
        yield lambda: bar.advance(task)
