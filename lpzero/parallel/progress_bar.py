"""A bar on stderr with rate and time left; one bar over several pieces of work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar that is shown; `share` is how much an item of a piece of work moves it."""

    shown: Progress
    task: TaskID
    share: float = 1.0

    def advance(self) -> None:
        self.shown.advance(self.task, self.share)

    def reach(self, completed: int, label: str) -> None:
        """Set the bar to that many items, and its text."""
        self.shown.update(self.task, completed=completed, description=label)


_OUTER: ContextVar[Bar | None] = ContextVar("outer", default=None)


@contextmanager
def whole_bar(label: str, total: int | None, share: float = 1.0) -> Iterator[Bar]:
    """One bar over all the work inside, in place of a bar for each piece that has a label."""
    with _shown() as bars:
        bar = Bar(bars, bars.add_task(label, total=total), share)
        before = _OUTER.set(bar)
        try:
            yield bar
        finally:
            _OUTER.reset(before)


@contextmanager
def progress(label: str | None, total: int) -> Iterator[Callable[[], None]]:
    """A function to call after each item; it moves a bar with rate and time left on stderr."""
    outer = _OUTER.get()
    if label is None or outer is not None:
        yield (lambda: None) if label is None or outer is None else outer.advance
        return
    with _shown() as bars:
        task = bars.add_task(label, total=total)
        yield lambda: bars.advance(task)


def _shown() -> Progress:
    from rich import progress as bars
    from rich.console import Console

    class Rate(bars.ProgressColumn):
        def render(self, task: bars.Task) -> str:
            return f"{task.speed:.1f}/s" if task.speed else "-/s"

    columns = (
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        Rate(),
        bars.TimeRemainingColumn(),
    )
    return bars.Progress(*columns, console=Console(stderr=True))
