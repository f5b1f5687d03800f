"""Functions in forks of the tests' process, which has imported everything: to be killed, or to
write at the same time. A command whose output is read is an `attempt` (tests/faults/attempt.py)."""

from __future__ import annotations

import multiprocessing
import os
import traceback
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from typing import Any

from joblib.externals.loky import reusable_executor


def start(function: Callable[..., Any], *arguments: Any) -> BaseProcess:
    """The running process; its exit code is the number that the function gives, if it does."""
    process = multiprocessing.get_context("fork").Process(
        target=_act, args=(function, arguments), daemon=True
    )
    process.start()
    return process


def _act(function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    forget_workers()
    code = 1
    try:
        found = function(*arguments)
        code = found if isinstance(found, int) else 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def forget_workers() -> None:
    """In a fork: the workers are its parent's, so it starts its own."""
    reusable_executor._executor = None
