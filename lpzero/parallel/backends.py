"""Where work runs: joblib set to local processes, or to a Dask or Ray cluster."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import joblib
from joblib.externals.loky.process_executor import BrokenProcessPool

from lpzero.errors import InputError
from lpzero.parallel import worker

BACKENDS = ("loky", "dask", "ray")
Errors = tuple[type[BaseException], ...]


@dataclass(frozen=True, slots=True)
class Workers:
    """Where work runs: local processes, or a cluster's workers at the scheduler's address."""

    jobs: int = 1
    backend: str = "loky"
    scheduler: str | None = None

    @property
    def is_this_process(self) -> bool:
        """Whether work is done here: one job, and no cluster."""
        return self.backend == "loky" and self.jobs == 1

    def __post_init__(self) -> None:
        if self.backend not in BACKENDS:
            known = ", ".join(BACKENDS)
            raise InputError(f"backend {self.backend!r} is unknown; use one of {known}")
        if self.jobs < 1:
            raise InputError(f"jobs is {self.jobs}, expected at least 1")
        if self.backend == "dask" and self.scheduler is None:
            raise InputError("backend dask needs a scheduler: give its address, tcp://HOST:PORT")


@contextmanager
def backend(workers: Workers) -> Iterator[Errors]:
    """A context in which joblib uses the backend; yields the errors that mean a lost worker."""
    with ExitStack() as stack:
        parameters: dict[str, Any] = {}
        if workers.backend == "dask":
            chosen, lost = _dask(workers, stack)
        elif workers.backend == "ray":
            chosen, lost = _ray(workers)
        elif workers.is_this_process:
            # A single job runs in this process.
            chosen, lost = "sequential", ()
        else:
            _allow_recycling()
            chosen, lost = "loky", (BrokenProcessPool,)
            parameters = {"initializer": worker.prepare, "initargs": (os.getpid(),)}
        stack.enter_context(joblib.parallel_config(backend=chosen, **parameters))
        yield lost


def _allow_recycling() -> None:
    """Let loky replace a worker whose memory grew, as it does when it imports torch.

    loky warns about that in its manager thread, which dies if warnings are errors; the run would
    then wait forever.
    """
    warnings.filterwarnings("ignore", message="A worker stopped while some jobs were given")


def _dask(workers: Workers, stack: ExitStack) -> tuple[Any, Errors]:
    try:
        from distributed import Client, KilledWorker

        from lpzero.parallel.dask import Backend
    except ImportError:
        raise InputError("backend dask is not installed: pip install 'lpzero[dask]'") from None
    try:
        client = stack.enter_context(Client(workers.scheduler, timeout=10, set_as_default=False))
    except (OSError, ValueError) as error:
        raise InputError(f"no Dask scheduler at {workers.scheduler}: {error}") from error
    return Backend(client=client), (KilledWorker,)


def _ray(workers: Workers) -> tuple[Any, Errors]:
    try:
        import ray
        from ray.util.joblib import register_ray
    except ImportError:
        raise InputError("backend ray is not installed: pip install 'lpzero[ray]'") from None
    if not ray.is_initialized():
        ray.init(address=workers.scheduler)
    register_ray()
    return "ray", (ray.exceptions.WorkerCrashedError,)
