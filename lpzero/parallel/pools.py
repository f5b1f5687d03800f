"""Where items are sent and answers come from: local processes, a Dask or a Ray cluster."""

from __future__ import annotations

import logging
import socket
import time
from dataclasses import dataclass, field
from typing import Protocol

from lpzero.errors import LPZeroError
from lpzero.parallel.tasks import Answer

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
    known: int = 0
    asked: float = float("-inf")
    alone_since: float | None = field(default=None)
    is_told: bool = False

    def is_old(self) -> bool:
        return time.monotonic() - self.asked > POLL_SECONDS

    def room(self, processes: int) -> int:
        """How many items may be in flight with so many processes; says when there are none."""
        now = time.monotonic()
        self.known, self.asked = AHEAD * processes, now
        if processes:
            self.alone_since, self.is_told = None, False
        elif self.alone_since is None:
            self.alone_since = now
        elif now - self.alone_since > _PATIENCE and not self.is_told:
            self.is_told = True
            logger.warning("the %s cluster has no workers: waiting for the first", self.backend)
        return self.known


def is_listening(place: str) -> bool:
    """Whether a process accepts connections at HOST:PORT."""
    host, _, port = place.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
    except OSError:
        return False
    return True
