"""A function applied to items by local processes or a cluster: results in order of completion.

One loop for every pool. A bounded number of items is in flight; the function is sent once per
worker. A worker that dies does not end the run: its items are tried again, at last one at a time if
the pool cannot say which one it died of, so that only the item that kills its worker is given up.
"""

from __future__ import annotations

import logging
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Any, TypeVar

from lpzero.parallel.tasks import Answer, Died, Payload, Raised, dumps
from lpzero.parallel.workers import Pool, Workers, opened

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


_BAR_WIDTH = 20  # so that label, counts and times fit 80 columns
_NOTEBOOK_WIDTH, _NOTEBOOK_PAUSE = 80, 0.2  # characters, and seconds between updates
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
    """A function to call after each item; it moves a bar with rate and time left on stderr.

    There is no bar without items. On a terminal it is gone once the work is done.
    """
    outer = _OUTER.get()
    if label is None or not total or outer is not None:
        yield (lambda: None) if label is None or outer is None else outer.advance
        return
    with _shown() as bars:
        task = bars.add_task(label, total=total)
        yield lambda: bars.advance(task)


def _shown() -> Progress:
    from rich import progress as bars
    from rich.console import Console
    from rich.table import Column

    class Rate(bars.ProgressColumn):
        def render(self, task: bars.Task) -> str:
            return f"{task.speed:.1f}/s" if task.speed else "-/s"

    columns = (
        bars.TextColumn(
            "{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis")
        ),
        bars.BarColumn(_BAR_WIDTH),
        bars.MofNCompleteColumn(),
        Rate(),
        bars.TimeRemainingColumn(),
    )
    if "ipykernel" in sys.modules:
        return _in_notebook(*columns)
    console = Console(stderr=True)
    return bars.Progress(*columns, console=console, transient=console.is_terminal)


def _in_notebook(*columns: Any) -> Progress:
    """Bars as the text of one output, which is updated: rich itself would ask for ipywidgets."""
    from IPython.display import display
    from rich import progress as bars
    from rich.console import Console

    class InNotebook(bars.Progress):
        def start(self) -> None:
            self.due = time.monotonic()
            self.output = display(self.text(), raw=True, display_id=True)

        def stop(self) -> None:
            self.output.update(self.text(), raw=True)

        def text(self) -> dict[str, str]:
            written = StringIO()
            page = Console(file=written, width=_NOTEBOOK_WIDTH, force_jupyter=False)
            page.print(self.get_renderable())
            return {"text/plain": written.getvalue().rstrip()}

        def advance(self, *given: Any, **named: Any) -> None:
            super().advance(*given, **named)
            self.show()

        def update(self, *given: Any, **named: Any) -> None:
            super().update(*given, **named)
            self.show()

        def show(self) -> None:
            if time.monotonic() >= self.due:
                self.due = time.monotonic() + _NOTEBOOK_PAUSE
                self.output.update(self.text(), raw=True)

    return InNotebook(*columns, console=Console(file=StringIO(), force_jupyter=False))


def is_watched() -> bool:
    """Whether there is a terminal or a notebook in which a bar moves."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


logger = logging.getLogger(__name__)
T = TypeVar("T")
R = TypeVar("R")

# Logged for each stream that leaves this process, at the level DEBUG.
SENT = "sent %d bytes once to each worker, %d bytes for items, %d times"
_DEATHS = 3  # after which an item is given up


@dataclass(frozen=True, slots=True)
class Lost:
    """In place of a result: the worker died whenever it worked on this item."""

    reason: str = "its worker process died each time, probably out of memory"


def stream(
    function: Callable[[T], R],
    items: Sequence[T],
    workers: Workers | None = None,
    label: str | None = None,
) -> Generator[tuple[int, R | Lost], None, None]:
    """(index, function(item)) in the order of completion; a bar on stderr when there is a label.

    An exception of the function ends the stream. Close the iterator to stop the workers.
    """
    workers = workers or Workers()
    with progress(label, len(items)) as advance:
        if workers.is_this_process:
            for index, item in enumerate(items):
                result = function(item)
                advance()
                yield index, result
        elif items:
            payload = Payload.of(function)
            with opened(workers, payload) as pool:
                for index, answer in _answers(pool, items, payload.nbytes):
                    advance()
                    if isinstance(answer, Raised):
                        raise answer.again()
                    yield index, Lost() if isinstance(answer, Died) else answer.value


def _answers(
    pool: Pool, items: Sequence[T], payload: int
) -> Generator[tuple[int, Answer], None, None]:
    """Each item's index and its answer, which is `Died` for an item that is given up."""
    waiting = deque(range(len(items)))
    suspects: deque[int] = deque()  # each is tried alone, when nothing else is left
    running: set[int] = set()
    deaths: Counter[int] = Counter()
    sent: Counter[str] = Counter()
    while waiting or suspects or running:
        while waiting and len(running) < pool.room():
            _send(pool, items, waiting.popleft(), running, sent)
        if suspects and not waiting and not running:
            _send(pool, items, suspects.popleft(), running, sent)
        for index, answer in pool.answers():
            running.discard(index)
            if not isinstance(answer, Died):
                yield index, answer
                continue
            deaths[index] += 1
            if answer.is_final or deaths[index] >= _DEATHS:
                yield index, answer
            elif deaths[index] == _DEATHS - 1 and not pool.blames_one:
                suspects.append(index)
            else:
                waiting.append(index)
    logger.debug(SENT, payload, sent["bytes"], sent["items"])


def _send(
    pool: Pool, items: Sequence[T], index: int, running: set[int], sent: Counter[str]
) -> None:
    packed = dumps(items[index])
    pool.submit(index, packed)
    running.add(index)
    sent.update(bytes=len(packed), items=1)
