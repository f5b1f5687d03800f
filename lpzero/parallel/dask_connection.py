"""The connection of this process to a Dask scheduler, kept between streams."""

from __future__ import annotations

import atexit
import logging
import pkgutil
import time
from contextlib import suppress

import distributed.client
from distributed import Client

from lpzero.errors import InputError
from lpzero.parallel.pools import POLL_SECONDS, is_listening
from lpzero.parallel.tasks import version_error
from lpzero.version import VERSION

CONNECT_SECONDS = 10
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
    known = _CLIENTS.pop(address, None)
    if known is not None:
        wait_while_connecting(known)
    if known is None or known.status != "running":
        _check_address(address)
        # What the user needs of it is raised here; its own log would come on top.
        for log in ("distributed", "distributed.client", "distributed.utils"):
            logging.getLogger(log).setLevel(logging.CRITICAL)
        try:
            known = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
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
    """Raise InputError unless every worker has this version.

    Each task compares it too, so workers that join later, or do not answer now, are not missed.
    """
    try:
        found = client.run(pkgutil.resolve_name, "lpzero.version:VERSION", on_error="return")
    except UNANSWERED:
        return
    others: dict[str, list[str]] = {}
    for where, version in found.items():
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
