"""Where work runs: this process, local processes, or a Dask or Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from lpzero.errors import InputError
from lpzero.parallel.payload import Payload
from lpzero.parallel.pools import Pool
from lpzero.parallel.tasks import engine

LOCAL, DASK, RAY = BACKENDS = ("loky", "dask", "ray")
_ADDRESSES = {DASK: "tcp://HOST:PORT", RAY: "HOST:PORT, ray://HOST:PORT or auto"}


@dataclass(frozen=True, slots=True)
class Workers:
    """Where work runs: local processes, or a cluster's workers at the scheduler's address."""

    jobs: int = 1
    backend: str = LOCAL
    scheduler: str | None = None

    @property
    def is_this_process(self) -> bool:
        """Whether work is done here: one job, and no cluster."""
        return self.backend == LOCAL and self.jobs == 1

    def __post_init__(self) -> None:
        if self.backend not in BACKENDS:
            known = ", ".join(BACKENDS)
            raise InputError(f"backend {self.backend!r} is unknown; use one of {known}")
        if self.jobs < 1:
            raise InputError(f"jobs is {self.jobs}, expected at least 1")
        if self.backend in _ADDRESSES and self.scheduler is None:
            raise InputError(
                f"backend {self.backend} needs a scheduler: give its address,"
                f" {_ADDRESSES[self.backend]}"
            )
        if self.backend == LOCAL and self.scheduler is not None:
            raise InputError("a scheduler was given: say which with the backend, dask or ray")


@contextmanager
def opened(workers: Workers, payload: Payload) -> Iterator[Pool]:
    """The pool that applies the payload; closed at the end."""
    pool = _pool(workers, payload)
    try:
        yield pool
    finally:
        pool.close()


def _pool(workers: Workers, payload: Payload) -> Pool:
    if workers.backend == LOCAL:
        from lpzero.parallel.local import LocalPool

        return LocalPool(workers.jobs, payload)
    assert workers.scheduler is not None, "checked when the workers were named"
    payload = replace(payload, engine=engine())
    try:
        if workers.backend == DASK:
            from lpzero.parallel.dask import DaskPool

            return DaskPool(workers.scheduler, payload)
        from lpzero.parallel.ray import RayPool

        return RayPool(workers.scheduler, payload)
    except ImportError:
        name = workers.backend
        raise InputError(f"backend {name} is not installed: pip install 'lpzero[{name}]'") from None
