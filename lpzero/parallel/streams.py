"""A function applied to items by local processes or a cluster: results in order of completion.

One loop for every pool. A bounded number of items is in flight; the function is sent once per
worker. A worker that dies does not end the run: its items are tried again, at last one at a time if
the pool cannot say which one it died of, so that only the item that kills its worker is given up.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lpzero.parallel.payload import Payload, dumps
from lpzero.parallel.pools import Pool
from lpzero.parallel.progress_bar import progress
from lpzero.parallel.tasks import Answer, Died, Raised
from lpzero.parallel.workers import Workers, opened

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
