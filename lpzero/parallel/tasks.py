"""What a worker does with one item, and its answer: the result, or the error of the function."""

from __future__ import annotations

import pickle
import socket
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lpzero.errors import InputError, LPZeroError
from lpzero.parallel.allocator import keep_freed_memory
from lpzero.parallel.engine import engine
from lpzero.parallel.payload import Function, Payload
from lpzero.parallel.pickling import dumps


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
