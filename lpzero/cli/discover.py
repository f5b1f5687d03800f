"""What `lpzero discover` shows while it works: a line per generation; Ctrl-C ends one first."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from lpzero.cli import output
from lpzero.cli.interruption import handling
from lpzero.verbs import Screen

if TYPE_CHECKING:
    from lpzero.discover.campaign import Callback, Progress

_QUIET_SECONDS = 2.0  # between lines where they do not overwrite each other


@contextmanager
def screen(request: Any) -> Iterator[Screen]:
    """A context with a line per generation, in which Ctrl-C finishes the generation first."""
    is_quiet = request.shown.quiet
    line, stop = _GenerationLine(), _Stop()

    def stops() -> bool:
        """Whether the user asked to stop; no generation is running any more."""
        stop.is_evolving = False
        line.close()
        return stop.is_asked

    watch: list[Callback] = [stop.after_generation]
    watch += [] if is_quiet else [line]
    with handling((signal.SIGINT, signal.SIGTERM), stop):
        yield Screen(not is_quiet, say=output.note, watch=watch, stops=stops)


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
        output.note("\nfinishing the generation; press again to stop at once")

    def after_generation(self, progress: Progress) -> bool:
        """Whether the campaign stops here."""
        self.is_evolving = True
        return self.is_asked


class _GenerationLine:
    """A line per generation on stderr: overwritten on a terminal, every few seconds elsewhere."""

    def __init__(self) -> None:
        self.is_live = sys.stderr.isatty()
        self.width, self.shown = 0, float("-inf")

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        is_last = progress.generation >= progress.generations
        pause = 0.1 if self.is_live else _QUIET_SECONDS
        if now - self.shown < pause and not is_last:
            return
        self.shown = now
        text = describe(progress)
        if self.is_live:
            click.echo("\r" + text.ljust(self.width), err=True, nl=False)
            self.width = len(text)
        else:
            click.echo(text, err=True)

    def close(self) -> None:
        if self.is_live and self.width:
            click.echo(err=True)


def describe(progress: Progress) -> str:
    """The progress line of a generation."""
    tried = max(1, progress.tried)
    rules = ", ".join(f"{n / tried:.0%} {rule}" for rule, n in progress.rejected.most_common(2))
    left = "-" if progress.seconds_left is None else _clock(progress.seconds_left)
    return (
        f"generation {progress.generation}/{progress.generations}"
        f"  train {progress.train:.3f}  valid {progress.valid:.3f}"
        f"  size {progress.best.complexity}"
        f"  rejected {progress.rejected.total() / tried:.0%}{f' ({rules})' if rules else ''}"
        f"  repeats {progress.repeats / tried:.0%}  {progress.per_second:.0f}/s  left {left}"
    )


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"
