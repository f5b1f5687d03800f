"""What verbs show while they work, and what Ctrl-C and SIGTERM do.

A function with the name of a verb gives the context in which it runs: `discover` prints a line per
generation and finishes the one that runs before it stops, `tables` shows how much is downloaded.
"""

from __future__ import annotations

import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import click

from lpzero.cli import output
from lpzero.parallel import Bar, whole_bar
from lpzero.verbs import Screen

if TYPE_CHECKING:
    from lpzero.discover.campaign import Callback, Progress

CODE = 130
_QUIET_SECONDS = 2.0  # between lines where they do not overwrite each other
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


@contextmanager
def discover(request: Any) -> Iterator[Screen]:
    """A context with a line per generation, in which Ctrl-C finishes the generation first."""
    is_quiet = request.work.quiet
    line, stop = _GenerationLine(), _Stop()

    def stops() -> bool:
        """Whether the user asked to stop; no generation is running any more."""
        stop.is_evolving = False
        line.close()
        return stop.is_asked

    watch: list[Callback] = [stop.after_generation]
    watch += [] if is_quiet else [line]
    with handling((signal.SIGINT, signal.SIGTERM), stop):
        try:
            yield Screen(not is_quiet, say=output.note, watch=watch, stops=stops)
        finally:
            line.close()


class _Stop:
    """Handles Ctrl-C and SIGTERM: a generation is finished first, anything else is left at once.

    A second signal stops the generation, too.
    """

    def __init__(self) -> None:
        self.is_asked = self.is_evolving = False

    def __call__(self, number: int, frame: Any) -> None:
        if self.is_asked or not self.is_evolving:
            raise KeyboardInterrupt
        self.is_asked = True
        output.note("finishing the generation; press again to stop at once")

    def after_generation(self, progress: Progress) -> bool:
        """Whether the campaign stops here."""
        self.is_evolving = True
        return self.is_asked


class _GenerationLine:
    """A bar over the generations on a terminal, elsewhere a line every few seconds."""

    def __init__(self) -> None:
        self.is_live = sys.stderr.isatty()
        self.shown = float("-inf")
        self.stack = ExitStack()
        self.bar: Bar | None = None

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        is_last = progress.generation >= progress.generations
        pause = 0.1 if self.is_live else _QUIET_SECONDS
        if now - self.shown < pause and not is_last:
            return
        self.shown = now
        if not self.is_live:
            click.echo(describe(progress), err=True)
            return
        if self.bar is None:
            self.bar = self.stack.enter_context(whole_bar("generations", progress.generations))
        self.bar.reach(progress.generation, best_so_far(progress))

    def close(self) -> None:
        self.stack.close()
        self.bar = None


def best_so_far(progress: Progress) -> str:
    """The figures of the best formula so far."""
    return (
        f"train {progress.train:.3f}  valid {progress.valid:.3f}  size {progress.best.complexity}"
    )


def describe(progress: Progress) -> str:
    """The progress line of a generation."""
    left = "-" if progress.seconds_left is None else _clock(progress.seconds_left)
    done = f"generation {progress.generation:,} of {progress.generations:,}"
    return f"{done}  {best_so_far(progress)}  left {left}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"


@contextmanager
def tables(request: Any) -> Iterator[Screen]:
    """A context with a line of the bytes downloaded: updated on a terminal, else printed once."""
    line = _DownloadLine(request.words[-1] if request.words else "")
    try:
        yield Screen(say=output.note, watch=[line])
    finally:
        line.close()


class _DownloadLine:
    def __init__(self, name: str) -> None:
        self.name, self.text, self.shown = name, "", 0.0

    def __call__(self, progress: tuple[int, int | None]) -> None:
        done, total = progress
        share = f" of {total / 1e6:.1f} MB ({done / total:.0%})" if total else " MB"
        self.text = f"{self.name}: {done / 1e6:.1f}{share}"
        now = time.monotonic()
        if sys.stderr.isatty() and now - self.shown > 0.1:
            self.shown = now
            click.echo(f"\r{self.text}", err=True, nl=False)

    def close(self) -> None:
        if self.text:
            start = "\r" if sys.stderr.isatty() else ""
            click.echo(start + output.printable(self.text), err=True)
