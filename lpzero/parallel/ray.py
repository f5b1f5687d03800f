"""A Ray cluster: the payload in its object store once, items as tasks that refer to it.

Every node fetches the payload once and its processes map it. Ray would end this process when the
head does not answer for a minute, so the head is watched here and its loss is an error.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from contextlib import suppress
from typing import Any

import ray
from ray import exceptions

from lpzero.errors import InputError
from lpzero.parallel.tasks import Answer, Died, Payload, perform, version_error
from lpzero.parallel.workers import AHEAD, POLL_SECONDS, Capacity, ClusterLostError, is_listening

_SILENT_SECONDS = 3.0  # for which the head may not answer
_CLIENT = "ray://"
_DEATHS = (
    exceptions.WorkerCrashedError,
    exceptions.NodeDiedError,
    exceptions.OutOfMemoryError,
    exceptions.ObjectLostError,
    exceptions.LocalRayletDiedError,
)


class RayPool:
    """The nodes of a Ray cluster."""

    blames_one = True

    def __init__(self, address: str, payload: Payload) -> None:
        self._address, self._payload = address, payload
        _connect(address)
        self._capacity = Capacity("Ray")
        # Deaths are counted by the stream, as for every pool.
        self._perform = ray.remote(max_retries=0)(perform)
        self._sent: Any = None
        self._running: dict[Any, int] = {}
        self._head = address.removeprefix(_CLIENT)
        if not address.startswith(_CLIENT):
            self._head = ray.get_runtime_context().gcs_address
        self._heard = time.monotonic()

    def room(self) -> int:
        if not self._capacity.is_old():
            return self._capacity.most
        if not self._is_head_there():  # a question would wait for it
            return self._capacity.most
        processes = int(self._ask(ray.cluster_resources).get("CPU", 0))
        # A cluster that grows on demand starts with none and must see that there is work.
        return max(AHEAD, self._capacity.room(processes))

    def submit(self, number: int, item: bytes) -> None:
        if self._sent is None:
            self._sent = self._ask(ray.put, self._payload)
        self._running[self._ask(self._perform.remote, self._sent, item)] = number

    def answers(self) -> list[tuple[int, Answer]]:
        if not self._running:  # no worker has joined yet
            time.sleep(POLL_SECONDS)
            return []
        done, rest = self._ask(ray.wait, list(self._running), timeout=POLL_SECONDS)
        if not done:
            self._is_head_there()
            return []
        if rest:
            done += self._ask(ray.wait, rest, num_returns=len(rest), timeout=0)[0]
        return [(self._running.pop(ref), self._answer(ref)) for ref in done]

    def close(self) -> None:
        with suppress(Exception):  # the cluster may be lost
            for ref in self._running:
                ray.cancel(ref, force=True)
        self._running.clear()
        self._sent = None

    def _answer(self, ref: Any) -> Answer:
        try:
            answer: Answer = self._ask(ray.get, ref)
            return answer
        except _DEATHS:
            return Died()
        except exceptions.RayTaskError as error:
            # `perform` answers with errors; this one was raised before it could be called.
            raise version_error({"none": ["a node"]}, self._payload.engine) from error

    def _ask(self, call: Any, *words: Any, **more: Any) -> Any:
        """What Ray answers; a lost connection raises ClusterLostError."""
        try:
            return call(*words, **more)
        except (ConnectionError, exceptions.RaySystemError, exceptions.RpcError) as error:
            reason = " ".join(str(error).split())[:200]
            raise ClusterLostError("Ray", self._address, reason) from error

    def _is_head_there(self) -> bool:
        """Whether the head answers now; raises ClusterLostError if it has not for a while."""
        if is_listening(self._head):
            self._heard = time.monotonic()
            return True
        if time.monotonic() - self._heard > _SILENT_SECONDS:
            raise ClusterLostError("Ray", self._address, "its head does not answer")
        return False


def _connect(address: str) -> None:
    """Connect this process, once; raise InputError if that fails."""
    if ray.is_initialized():
        return
    _check_address(address)
    logging.getLogger("ray").setLevel(logging.CRITICAL)
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTERM) if is_main else None
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"no Ray cluster at {address}: {reason}") from error
    finally:
        if before is not None:  # Ray puts its own in its place
            signal.signal(signal.SIGTERM, before)


def _check_address(address: str) -> None:
    """Raise InputError unless it is an address of Ray's, where something listens."""
    if address == "auto":
        return
    place = address.removeprefix(_CLIENT)
    if "://" in place or not place.rpartition(":")[2].isdigit():
        raise InputError(
            f"{address} is not the address of a Ray cluster: give HOST:PORT, ray://HOST:PORT, or"
            " auto for the one of this machine"
        )
    if not is_listening(place):
        raise InputError(f"no Ray cluster at {address}: nothing listens there")
