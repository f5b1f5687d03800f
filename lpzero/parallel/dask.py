"""A Dask cluster: the payload scattered to every worker once, items as tasks that refer to it.

A worker that joins later fetches the payload from another one. If the workers that hold it have all
died, or the scheduler came back empty, it is sent again. A question to the scheduler that is lost,
because it or a worker was just restarted, is asked again; only a scheduler that cannot be reached
for a while ends a run.
"""

from __future__ import annotations

import atexit
import logging
import os
import pkgutil
import time
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import distributed
import distributed.client
from distributed import CancelledError, Client, KilledWorker

from lpzero.errors import InputError
from lpzero.parallel.tasks import Answer, Died, DoneWithoutResult, Payload, perform, version_error
from lpzero.parallel.workers import POLL_SECONDS, Capacity, ClusterLostError, is_listening
from lpzero.version import VERSION

T = TypeVar("T")

CONNECT_SECONDS = ASK_SECONDS = 10  # to connect, and to ask a lost question again
PAUSE = POLL_SECONDS / 10
# What a question to the scheduler raises when it is lost. Closed clients had no error of their own
# in earlier versions.
UNANSWERED = (
    OSError,
    distributed.TimeoutError,
    getattr(distributed.client, "ClosedClientError", OSError),
)
_SCHEMES = ("tcp", "tls", "ucx", "ws", "wss")
_CLIENTS: dict[str, Client] = {}


def wait_while_connecting(client: Client) -> None:
    """Return when a connection that was lost is there again, or given up by the client."""
    while client.status == "connecting":
        time.sleep(PAUSE)


def connected(address: str) -> Client:
    """The connection of this process to the scheduler, with workers of the same version."""
    client = _CLIENTS.pop(address, None)
    if client is not None:
        wait_while_connecting(client)
    if client is None or client.status != "running":
        _check_address(address)
        # What the user needs of it is raised here; its own log would come on top.
        for log in ("distributed", "distributed.client", "distributed.utils"):
            logging.getLogger(log).setLevel(logging.CRITICAL)
        try:
            client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, ImportError) as error:
            reason = " ".join(str(error).split())[:200]
            raise InputError(f"no Dask scheduler at {address}: {reason}") from error
        _check_versions(client)
    _CLIENTS[address] = client
    return client


def _check_address(address: str) -> None:
    """Raise InputError unless it is an address of Dask's, where something listens."""
    scheme, place = address.split("://", 1) if "://" in address else ("tcp", address)
    if scheme not in _SCHEMES or not place.rstrip("/").rpartition(":")[2].isdigit():
        raise InputError(f"{address} is not the address of a Dask scheduler: give tcp://HOST:PORT")
    if not is_listening(place.rstrip("/")):
        raise InputError(f"no Dask scheduler at {address}: nothing listens there")


def _check_versions(client: Client) -> None:
    """Raise InputError unless every worker has this version.

    Each task compares it too, so workers that join later, or do not answer now, are not missed.
    """
    try:
        versions = client.run(pkgutil.resolve_name, "lpzero.version:VERSION", on_error="return")
    except UNANSWERED:
        return
    others: dict[str, list[str]] = {}
    for where, version in versions.items():
        if version != VERSION and not isinstance(version, OSError):  # a worker that was just lost
            others.setdefault(version if isinstance(version, str) else "none", []).append(where)
    if others:
        client.close()
        raise version_error(others, VERSION)


@atexit.register
def _close() -> None:
    for client in _CLIENTS.values():
        with suppress(*UNANSWERED):
            client.close(timeout=2)


class DaskPool:
    """The workers of a Dask scheduler."""

    blames_one = True

    def __init__(self, address: str, payload: Payload) -> None:
        self._address, self._payload = address, payload
        self._client = connected(address)
        self._capacity = Capacity("Dask")
        self._sent: Any = None
        self._running: dict[Any, int] = {}
        self._finished: SimpleQueue[Any] = SimpleQueue()
        self._attempts = 0

    def room(self) -> int:
        if not self._capacity.is_old():
            return self._capacity.most
        return self._capacity.room(sum(self._ask(self._client.nthreads).values()))

    def submit(self, number: int, item: bytes) -> None:
        while self._sent is None or self._sent.status != "finished":
            self._sent = self._ask(self._scattered)
            if self._sent is None:
                self.room()  # says after a while that there are no workers
        self._attempts += 1
        name = f"lpzero-{os.getpid()}-{id(self)}-{number}-{self._attempts}"
        future = self._ask(
            lambda: self._client.submit(perform, self._sent, item, key=name, pure=False)
        )
        self._running[future] = number
        future.add_done_callback(self._finished.put)

    def _scattered(self) -> Any:
        """The payload, sent to every worker; None if there is no worker now."""
        try:
            return self._client.scatter(self._payload, broadcast=True, hash=False)
        except distributed.TimeoutError:  # the scheduler has waited for one
            return None

    def answers(self) -> list[tuple[int, Answer]]:
        try:
            finished = [self._finished.get(timeout=POLL_SECONDS)]
        except Empty:
            self._check_connection()
            return []
        while not self._finished.empty():
            finished.append(self._finished.get())
        # A future is told of twice if its result was lost and computed again.
        return [
            (self._running.pop(future), self._answer(future))
            for future in dict.fromkeys(finished)
            if future in self._running
        ]

    def close(self) -> None:
        if self._running and self._client.status == "running":
            with suppress(*UNANSWERED, CancelledError):
                self._client.cancel(list(self._running))
        self._running.clear()
        self._sent = None

    def _answer(self, future: Any) -> Answer:
        # The scheduler tells the type when a task is done; the answer itself is four more messages.
        if future.status == "finished" and future.type is DoneWithoutResult:
            return DoneWithoutResult(None)
        try:
            answer: Answer = future.result(timeout=None)
            return answer
        except KilledWorker:
            return Died(is_final=True)
        except UNANSWERED:  # the result was lost on its way here
            self._check_connection()
            return Died()
        except CancelledError:  # the payload was lost, or the connection
            self._check_connection()
            self._sent = None
            return Died()
        except ModuleNotFoundError as error:
            raise version_error({"none": ["a worker"]}, self._payload.engine) from error

    def _ask(self, question: Callable[[], T]) -> T:
        """The answer to a question; one that is lost is asked again, for some seconds."""
        lost_since = None
        while True:
            try:
                return question()
            except Exception as error:
                self._check_connection()  # a client that gave up raises anything
                if not isinstance(error, UNANSWERED):
                    raise
                lost_since = lost_since or time.monotonic()
                if time.monotonic() - lost_since > ASK_SECONDS:
                    reason = " ".join(str(error).split())[:200] or type(error).__name__
                    raise ClusterLostError("Dask", self._address, reason) from error
                time.sleep(PAUSE)

    def _check_connection(self) -> None:
        """Wait until a connection that was lost is there again; the client tries for a while."""
        wait_while_connecting(self._client)
        if self._client.status != "running":
            raise ClusterLostError("Dask", self._address, "its scheduler does not answer")
