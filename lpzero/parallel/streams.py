"""Parallel work through joblib: a function applied to items, results in order of completion.

Local processes by default; the same call runs on a Dask or Ray cluster through joblib's
registered backends. A worker that dies does not end the run: its items are tried again, then
one at a time, so that only the item that kills its worker is given up.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Generic, TypeVar

import joblib

from lpzero.parallel.backends import Workers, backend
from lpzero.parallel.progress_bar import progress
from lpzero.parallel.shipment import Packed, Shipment, pack

T = TypeVar("T")
R = TypeVar("R")


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
    pending = dict(enumerate(items))
    with progress(label, len(items)) as advance, backend(workers) as lost_errors:
        for group in _attempts(pending):
            try:
                with closing(_run(function, group, workers)) as results:
                    for index, result in results:
                        pending.pop(index)
                        advance()
                        yield index, result
            except lost_errors:
                if len(group) == 1:
                    [index] = group
                    pending.pop(index)
                    advance()
                    yield index, Lost()


def _attempts(pending: dict[int, T]) -> Iterator[dict[int, T]]:
    """All items; those still pending, once more; then each on its own."""
    for _ in range(2):
        if pending:
            yield dict(pending)
    for index, item in list(pending.items()):
        yield {index: item}


def _run(
    function: Callable[[T], R], items: Mapping[int, T], workers: Workers
) -> Generator[tuple[int, R], None, None]:
    parallel = joblib.Parallel(n_jobs=workers.jobs, batch_size=1, return_as="generator_unordered")
    shipment = Shipment.of_this_process()
    if workers.is_this_process or shipment.is_empty:
        task = joblib.delayed(_Task(function))
        yield from parallel(task(index, item) for index, item in items.items())
    else:
        packed = joblib.delayed(Packed.of(shipment, _Task(function)))
        yield from parallel(packed(pack(pair)) for pair in items.items())


@dataclass(frozen=True, slots=True)
class _Task(Generic[T, R]):
    """The function; its result comes with the item's index."""

    function: Callable[[T], R]

    def __call__(self, index: int, item: T) -> tuple[int, R]:
        return index, self.function(item)
