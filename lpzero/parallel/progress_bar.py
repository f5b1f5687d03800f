"""A bar on stderr with rate and time left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(label: str | None, total: int) -> Iterator[Callable[[], None]]:
    """A function to call after each item; it moves a bar with rate and time left on stderr."""
    if label is None:
        yield lambda: None
        return
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
    with bars.Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(label, total=total)
        yield lambda: bar.advance(task)
