"""What a worker does with one item, and its answer: the result, or the error of the function."""

from __future__ import annotations

import ctypes
import hashlib
import pickle
import socket
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from lpzero.errors import InputError, LPZeroError
from lpzero.parallel.payload import Function, Payload, dumps
from lpzero.version import VERSION

_PACKAGES = ("lpzero", "primitives", "spaces")
# Of <malloc.h>: how much free memory a process keeps, and from which size on an array is a mapping
# of its own. The values are the largest that glibc's own, dynamic thresholds reach.
_MALLOC = {-1: 64 << 20, -3: 32 << 20}


@dataclass(frozen=True, slots=True)
class Done:
    """The function's result."""

    value: Any


class DoneWithoutResult(Done):
    """The function returned None: the type of the answer says all, so nothing need be fetched."""


@dataclass(frozen=True, slots=True)
class Raised:
    """The function's error, pickled, with the lines that say where it was raised."""

    error: bytes
    where: str

    @staticmethod
    def of(error: BaseException) -> Raised:
        where = "".join(traceback.format_exception(error))
        try:
            pickled = dumps(error)
            pickle.loads(pickled)  # noqa: S301 (our own): some errors can be written, not read
        except Exception:
            pickled = dumps(TaskError(f"{type(error).__name__}: {error}"))
        return Raised(pickled, where)

    def again(self) -> BaseException:
        """The error, caused by what the worker saw."""
        error: BaseException = pickle.loads(self.error)  # noqa: S301 (from our own worker)
        error.__cause__ = TaskError(f"in a worker:\n{self.where}")
        return error


@dataclass(frozen=True, slots=True)
class Died:
    """No answer: the worker died. `is_final` if others have died of the same item before."""

    is_final: bool = False


Answer = Done | Raised | Died


class TaskError(LPZeroError, RuntimeError):
    """An error in a worker that cannot be sent as it is."""


def perform(payload: Payload, item: bytes) -> Done | Raised:
    """Runs in a worker: the answer of the payload's function for an item."""
    if payload.engine != engine():
        return Raised.of(version_error({engine(): [socket.gethostname()]}, payload.engine))
    keep_freed_memory()
    return apply(payload.load, item)


def apply(load: Callable[[], Function], item: bytes) -> Done | Raised:
    """The answer of the function that `load` gives, for an item."""
    try:
        value = load()(pickle.loads(item))  # noqa: S301 (from the driver)
        return DoneWithoutResult(None) if value is None else Done(value)
    except (Exception, SystemExit) as error:  # the driver raises it
        return Raised.of(error)


def version_error(found: dict[str, list[str]], wanted: str) -> InputError:
    """The error for workers with other versions, by version; a version is "none" without lpzero."""
    told = "; ".join(
        f"lpzero {version} on {', '.join(sorted(where)[:3])}"
        + (f" and {len(where) - 3} more" if len(where) > 3 else "")
        for version, where in sorted(found.items())
    )
    return InputError(
        f"workers need lpzero {wanted}, as here; found {told}: install the same version there"
    )


@lru_cache(maxsize=1)
def engine() -> str:
    """The version and the source's digest, as in "0.2.0 (source 3f9a1c0b)".

    Two checkouts of one version differ in their source; their results and what they send may, too.
    """
    root, found = Path(__file__).parents[2], hashlib.sha256()
    for package in _PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            found.update(str(path.relative_to(root)).encode())
            found.update(path.read_bytes())
    return f"{VERSION} (source {found.hexdigest()[:8]})"


@lru_cache(maxsize=1)
def keep_freed_memory() -> None:
    """Let the C library's allocator use freed memory again; once per process, where it can.

    By itself it gives arrays of a megabyte back to the system when they are freed, and the next one
    costs page faults, millions of them for all products of two terms. Dask starts its workers with
    MALLOC_TRIM_THRESHOLD_=65536, with which they take three times as long (experiments/cluster).
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):  # macOS, musl
        return
    for name, value in _MALLOC.items():
        mallopt(name, value)
