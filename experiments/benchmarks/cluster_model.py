"""What measured work would take on many more workers, and what limits it there.

measurements of 1 and more workers  ->  seconds on N workers, as a table

    seconds(N) = serial + sending(N) + max(items * per item, ceil(items / N) * item)

serial: what the driver does before and after the items, once. per item: what the driver and the
scheduler together spend on an item that does nothing. item: what a worker spends on one item of the
work. sending: a payload reaches N workers in 2 + log2(N) steps, because workers pass it on to each
other; each step moves its bytes once over the network. Reading and writing the shared folder is not
in the model: it grows with the work and not with the workers, and is as fast as the file system.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

EMPTY_WORK = "empty"
WORKERS = (1, 2, 4, 16, 64, 256, 1000)
BANDWIDTH = 1e9  # bytes per second between two machines: ten gigabits, less what protocols take


@dataclass(frozen=True)
class Timed:
    """One piece of work on so many workers; seconds of wall time and of processor time."""

    work: str
    workers: int
    items: int
    wall: float
    driver: float
    scheduler: float
    all_workers: float
    busiest: float
    sent_once: int
    sent_for_items: int

    @property
    def critical_path(self) -> float:
        return self.driver + self.busiest


@dataclass(frozen=True)
class Model:
    """The work in numbers that do not depend on how many workers there are."""

    work: str
    items: int
    serial: float
    per_item: float
    item: float
    payload: int
    bytes_per_item: float

    @staticmethod
    def of(measured: Sequence[Timed], in_driver: float, in_scheduler: float) -> Model:
        """The model of one piece of work; each number is the mean over its measurements."""
        n, items = len(measured), measured[0].items
        driver = sum(one.driver for one in measured) / n
        return Model(
            measured[0].work,
            items,
            max(0.0, driver - items * in_driver),
            in_driver + in_scheduler,
            sum(one.all_workers for one in measured) / n / items,
            max(one.sent_once for one in measured),
            sum(one.sent_for_items for one in measured) / n / items,
        )

    def parts(self, workers: int) -> dict[str, float]:
        """Seconds of each part on so many workers."""
        return {
            "serial part": self.serial,
            "sending": (2 + math.log2(workers)) * self.payload / BANDWIDTH,
            "items in the driver": self.items * self.per_item,
            "items in workers": math.ceil(self.items / workers) * self.item,
        }

    def seconds(self, workers: int) -> float:
        serial, sending, in_driver, in_workers = self.parts(workers).values()
        return serial + sending + max(in_driver, in_workers)

    def limit(self, workers: int) -> str:
        """The largest part; of the items in workers, whether there are too few of them."""
        parts = self.parts(workers)
        largest = max(parts, key=lambda name: parts[name])
        is_short = largest == "items in workers" and self.items < 2 * workers
        return f"only {self.items} items" if is_short else largest

    def moved(self, workers: int) -> float:
        """Bytes over the network: the payload to each worker, and every item."""
        return workers * self.payload + self.items * self.bytes_per_item


def models(found: Sequence[Timed]) -> list[Model]:
    """A model of each piece of work but the empty one, which tells what an item costs."""
    empty = [one for one in found if one.work == EMPTY_WORK]
    n_items = sum(one.items for one in empty)
    in_driver = sum(one.driver for one in empty) / n_items
    in_scheduler = sum(one.scheduler for one in empty) / n_items
    names = dict.fromkeys(one.work for one in found if one.work != EMPTY_WORK)
    by_name = {name: [one for one in found if one.work == name] for name in names}
    return [Model.of(of, in_driver, in_scheduler) for of in by_name.values()]


def extrapolated(found: Sequence[Timed]) -> str:
    """The models, and seconds on many workers, as two Markdown tables."""
    made = models(found)
    lines = [
        "| work | items | serial s | driver and scheduler ms per item | worker s per item |"
        " MB once per worker |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {m.work} | {m.items} | {m.serial:.2f} | {1000 * m.per_item:.2f} | {m.item:.3f}"
        f" | {m.payload / 1e6:.2f} |"
        for m in made
    ]
    lines += [
        "",
        "| work | workers | critical path s | model s | times as fast | limited by | MB moved |",
        "|---|---:|---:|---:|---:|---|---:|",
    ]
    for m in made:
        measured = {one.workers: one.critical_path for one in found if one.work == m.work}
        for n in sorted({*WORKERS, *measured}):
            seen = f"{measured[n]:.1f}" if n in measured else "-"
            lines.append(
                f"| {m.work} | {n} | {seen} | {m.seconds(n):.2f}"
                f" | {m.seconds(1) / m.seconds(n):.1f} | {m.limit(n)} | {m.moved(n) / 1e6:.1f} |"
            )
    return "\n".join(lines)
