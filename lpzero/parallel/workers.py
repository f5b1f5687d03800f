"""Where work runs: this process, local processes, or a Dask or Ray cluster, each with a pool."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol

from lpzero.errors import InputError, LPZeroError
from lpzero.parallel.tasks import Answer, Payload, engine

AHEAD = 2  # items in flight for each process that can work, so that none waits for its next one
POLL_SECONDS = 1.0
_CONNECT_SECONDS = 3.0
_PATIENCE = 10.0  # seconds without any worker before it is said

logger = logging.getLogger(__name__)


class ClusterLostError(LPZeroError, RuntimeError):
    """The cluster cannot be reached any more; what was finished is stored."""

    def __init__(self, backend: str, address: str, reason: str) -> None:
        super().__init__(
            f"the {backend} cluster at {address} is lost: {reason}; finished work is stored, the"
            " same command continues (with --resume where there is one)"
        )


class Pool(Protocol):
    """One payload and the processes that apply it to items."""

    @property
    def blames_one(self) -> bool:
        """Whether only the item that a worker had died with is answered with `Died`."""
        ...

    def room(self) -> int:
        """How many items may be in flight now; it grows when workers join."""
        ...

    def submit(self, number: int, item: bytes) -> None:
        """Send an item."""
        ...

    def answers(self) -> list[tuple[int, Answer]]:
        """The items answered since the last call; waits a second for the first of them."""
        ...

    def close(self) -> None:
        """Give up the items in flight."""
        ...


@dataclass(slots=True)
class Capacity:
    """The number of processes of a cluster, asked for at most once a second."""

    backend: str
    most: int = 0
    asked: float = float("-inf")
    alone_since: float | None = field(default=None)
    is_told: bool = False

    def is_old(self) -> bool:
        return time.monotonic() - self.asked > POLL_SECONDS

    def room(self, processes: int) -> int:
        """How many items may be in flight with so many processes; says when there are none."""
        now = time.monotonic()
        self.most, self.asked = AHEAD * processes, now
        if processes:
            self.alone_since, self.is_told = None, False
        elif self.alone_since is None:
            self.alone_since = now
        elif now - self.alone_since > _PATIENCE and not self.is_told:
            self.is_told = True
            logger.warning("the %s cluster has no workers: waiting for the first", self.backend)
        return self.most


def is_listening(place: str) -> bool:
    """Whether a process accepts connections at HOST:PORT."""
    host, _, port = place.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
    except OSError:
        return False
    return True


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
            names = ", ".join(BACKENDS)
            raise InputError(f"backend {self.backend!r} is unknown; use one of {names}")
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
