"""Stopping a command: SIGTERM acts as Ctrl-C does, and a stopped verb prints how to continue."""

from __future__ import annotations

import shlex
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import click

from lpzero.cli import output

CODE = 130
_Handler = Callable[[int, Any], None]


@contextmanager
def handling(numbers: tuple[signal.Signals, ...], handler: _Handler) -> Iterator[None]:
    """A context in which the handler receives these signals; only the main thread can do that."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def terminable() -> AbstractContextManager[None]:
    """A context in which SIGTERM raises KeyboardInterrupt, as Ctrl-C does."""
    return handling((signal.SIGTERM,), signal.default_int_handler)


def same_command(context: click.Context, *more: str) -> str:
    """The command line that was given, and `more` words if it lacks them."""
    given = context.find_root().obj or ()
    return shlex.join(["lpzero", *given, *(word for word in more if word not in given)])


@contextmanager
def stopped_with(context: click.Context, *more: str) -> Iterator[None]:
    """A context in which an interruption prints the command that continues, and exits."""
    try:
        yield
    except KeyboardInterrupt:
        again = same_command(context, *more)
        output.note(f"stopped; finished work is saved, continue with: {again}")
        context.exit(CODE)
