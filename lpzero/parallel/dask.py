"""A Dask cluster: the payload scattered to every worker once, items as tasks that refer to it.

A worker that joins later fetches the payload from another one. If the workers that hold it have all
died, or the scheduler came back empty, it is sent again.
"""

from __future__ import annotations

import atexit
import logging
import os
import pkgutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import Any

from distributed import CancelledError, Client, KilledWorker

from lpzero.errors import InputError
from lpzero.parallel.payload import Payload
from lpzero.parallel.pools import POLL_SECONDS, Capacity, ClusterLostError, is_listening
from lpzero.parallel.tasks import Answer, Died, perform, version_error
from lpzero.version import VERSION

_CONNECT_SECONDS = 10
_SCHEMES = ("tcp", "tls", "ucx", "ws", "wss")
_CLIENTS: dict[str, Client] = {}


class DaskPool:
    """The workers of a Dask scheduler."""

    blames_one = True

    def __init__(self, address: str, payload: Payload) -> None:
        self._address, self._payload = address, payload
        self._client = _connected(address)
        self._capacity = Capacity("Dask")
        self._sent: Any = None
        self._running: dict[Any, int] = {}
        self._finished: SimpleQueue[Any] = SimpleQueue()
        self._attempts = 0

    def room(self) -> int:
        if not self._capacity.is_old():
            return self._capacity.known
        with self._watching():
            return self._capacity.room(sum(self._client.nthreads().values()))

    def submit(self, number: int, item: bytes) -> None:
        with self._watching():
            if self._sent is None or self._sent.status != "finished":
                self._sent = self._client.scatter(self._payload, broadcast=True, hash=False)
            self._attempts += 1
            name = f"lpzero-{os.getpid()}-{id(self)}-{number}-{self._attempts}"
            future = self._client.submit(perform, self._sent, item, key=name, pure=False)
        self._running[future] = number
        future.add_done_callback(self._finished.put)

    def answers(self) -> list[tuple[int, Answer]]:
        try:
            found = [self._finished.get(timeout=POLL_SECONDS)]
        except Empty:
            self._check_connection()
            return []
        while not self._finished.empty():
            found.append(self._finished.get())
        # A future is told of twice if its result was lost and computed again.
        return [
            (self._running.pop(future), self._answer(future))
            for future in dict.fromkeys(found)
            if future in self._running
        ]

    def close(self) -> None:
        if self._running and self._client.status == "running":
            with suppress(OSError, TimeoutError):
                self._client.cancel(list(self._running))
        self._running.clear()
        self._sent = None

    def _answer(self, future: Any) -> Answer:
        try:
            with self._watching():
                answer: Answer = future.result(timeout=None)
                return answer
        except KilledWorker:
            return Died(is_final=True)
        except CancelledError:  # the payload was lost, or the connection
            self._check_connection()
            self._sent = None
            return Died()
        except ModuleNotFoundError as error:
            raise version_error({"none": ["a worker"]}, self._payload.engine) from error

    def _check_connection(self) -> None:
        """Wait until a connection that was lost is there again; the client tries for a while."""
        while self._client.status == "connecting":
            time.sleep(POLL_SECONDS / 10)
        if self._client.status != "running":
            raise ClusterLostError("Dask", self._address, "its scheduler does not answer")

    @contextmanager
    def _watching(self) -> Iterator[None]:
        """A context in which an error of the connection means that the cluster is lost."""
        try:
            yield
        except (OSError, TimeoutError) as error:
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            raise ClusterLostError("Dask", self._address, reason) from error


def _connected(address: str) -> Client:
    """The connection of this process to the scheduler, with workers of the same version."""
    known = _CLIENTS.pop(address, None)
    if known is None or known.status != "running":
        _check_address(address)
        # What the user needs of it is raised here; its own log would come on top.
        for log in ("distributed", "distributed.client", "distributed.utils"):
            logging.getLogger(log).setLevel(logging.CRITICAL)
        try:
            known = Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, ImportError) as error:
            reason = " ".join(str(error).split())[:200]
            raise InputError(f"no Dask scheduler at {address}: {reason}") from error
        _check_versions(known)
    _CLIENTS[address] = known
    return known


def _check_address(address: str) -> None:
    """Raise InputError unless it is an address of Dask's, where something listens."""
    scheme, place = address.split("://", 1) if "://" in address else ("tcp", address)
    if scheme not in _SCHEMES or not place.rstrip("/").rpartition(":")[2].isdigit():
        raise InputError(f"{address} is not the address of a Dask scheduler: give tcp://HOST:PORT")
    if not is_listening(place.rstrip("/")):
        raise InputError(f"no Dask scheduler at {address}: nothing listens there")


def _check_versions(client: Client) -> None:
    """Raise InputError unless every worker has this version; those that join later tell it too."""
    found = client.run(pkgutil.resolve_name, "lpzero.version:VERSION", on_error="return")
    others: dict[str, list[str]] = {}
    for where, version in found.items():
        if version != VERSION:
            others.setdefault(version if isinstance(version, str) else "none", []).append(where)
    if others:
        client.close()
        raise version_error(others, VERSION)


@atexit.register
def _close() -> None:
    for client in _CLIENTS.values():
        with suppress(OSError, TimeoutError):
            client.close(timeout=2)
