"""How work grows from 1 to 4 Dask workers on this machine, and what that means for 1,000.

    LPZERO_DATA=FOLDER python -m experiments.cluster.growth [--workers 1 2 3 4] [--cache FOLDER]

Starts a scheduler and workers of one thread on loopback and times, for each number of workers:
`stats` (sketches of nano-gpt2), `products` (every product of two terms, `exhaust --terms 2`) and
`chains` (branch tables of chains of two). Where cores are busy or too few, wall times
say little; the processor seconds do. The critical path is those of the driver and of the busiest
worker: what the wall time would be if every process had a core of its own.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import tempfile
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from experiments.measured import prints_measured
from lpzero.exhaust.run import Exhaustion, exhaust
from lpzero.parallel import Workers, stream
from lpzero.parallel.streams import SENT
from lpzero.scores.branch_table import branch_table
from lpzero.scores.chains import surviving
from lpzero.sketches.builder import Builder, Sketches, build, sketches
from lpzero.sketches.store import Store, default_folder
from spaces.tables import Table, load, split

SMALL, LARGE = "nano-gpt2", "flexibert"
CHAINED = 24  # architectures whose branch tables are built
EMPTY = 500  # items that do nothing


@dataclass(frozen=True)
class Timed:
    """One piece of work on so many workers; seconds of wall time and of processor time."""

    work: str
    workers: int
    items: int
    wall: float
    driver: float
    all_workers: float
    busiest: float
    sent_once: int
    sent_for_items: int

    @property
    def critical_path(self) -> float:
        return self.driver + self.busiest


class Traffic(logging.Handler):
    """Adds up what streams say they sent: bytes once per worker, bytes for items, items."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.sent = [0, 0, 0]

    def emit(self, record: logging.LogRecord) -> None:
        if record.msg == SENT and isinstance(record.args, tuple):
            for place, number in enumerate(record.args):
                assert isinstance(number, int)
                self.sent[place] += number


@contextmanager
def cluster(n: int, folder: Path) -> Any:
    """A client of a scheduler with n workers, each a process of one thread."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=n,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address=None,
            local_directory=str(folder),
            silence_logs=logging.CRITICAL,
        ) as started,
        Client(started, set_as_default=False) as client,
    ):
        yield client


def measure(work: str, client: Any, do: Callable[[Workers], None]) -> Timed:
    """Do it on the client's workers."""
    workers = Workers(backend="dask", scheduler=client.scheduler.address)
    log, traffic = logging.getLogger("lpzero.parallel.streams"), Traffic()
    log.addHandler(traffic)
    log.setLevel(logging.DEBUG)
    before, own, start = client.run(time.process_time), time.process_time(), time.perf_counter()
    do(workers)
    wall, driver = time.perf_counter() - start, time.process_time() - own
    used = [now - before[where] for where, now in client.run(time.process_time).items()]
    log.removeHandler(traffic)
    once, for_items, items = traffic.sent
    return Timed(
        work, len(used), items, wall, driver, sum(used), max(used), once, for_items
    )  # fmt: skip


@dataclass(frozen=True)
class Material:
    """The tables and the sketches that the large one has."""

    small: Table
    large: Table
    found: Sketches

    @staticmethod
    def of(data: str | None, cache: Path) -> Material:
        """Without released tables the small one is taken for both."""
        small = load(SMALL)
        large = load(LARGE, data) if data else small
        found = sketches(large, Builder(store=Store(cache), workers=Workers(os.cpu_count() or 1)))
        branch_table(found, surviving(1), None, Workers(os.cpu_count() or 1))
        return Material(small, large, found)


def growth(n: int, material: Material, folder: Path) -> list[Timed]:
    """Every piece of work on n workers."""

    def stats(workers: Workers) -> None:
        table, store = material.small, Store(folder / f"sketches-{n}")
        build(table.space, table.archs, Builder(store=store, workers=workers))

    def products(workers: Workers) -> None:
        parts, asked = split(material.large, 0), Exhaustion(terms=2, workers=workers)
        exhaust(material.large, material.found, parts, folder / f"products-{n}", asked)

    def chains(workers: Workers) -> None:
        rows = random.Random(0).sample(range(len(material.large)), CHAINED)
        store = Store(folder / f"chains-{n}")
        for row in rows:  # the same sketches in a store without their tables
            name = material.found.addresses[row]
            source = material.found.store.path(material.found.space, name)
            target = store.path(material.found.space, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(source)
        names = [material.found.addresses[row] for row in rows]
        picked = Sketches(store, material.found.space, names, material.found.report)
        branch_table(picked, surviving(2), None, workers)

    def empty(workers: Workers) -> None:
        for _ in stream(abs, range(EMPTY), workers):
            pass

    with cluster(n, folder / "dask") as client:
        client.wait_for_workers(n)
        measure("start", client, empty)  # connects, and imports what every worker needs
        client.run(_import_all)
        pieces = (("empty", empty), ("stats", stats), ("products", products), ("chains", chains))
        return [measure(name, client, do) for name, do in pieces]


def _import_all() -> None:
    import lpzero.exhaust.run
    import lpzero.statistics.extraction  # noqa: F401


def table_of(found: list[Timed]) -> str:
    """The measurements as Markdown."""
    head = (
        "| work | workers | items | wall s | wall, times as fast | driver CPU s | workers' CPU s |"
        " busiest worker s | critical path s | critical path, times as fast | MB once per worker |"
        " kB per item |"
    )
    lines = [head, "|---|" + "---:|" * 11]
    first = {one.work: one for one in found if one.workers == min(o.workers for o in found)}
    for one in sorted(found, key=lambda one: (one.work, one.workers)):
        base = first[one.work]
        lines.append(
            f"| {one.work} | {one.workers} | {one.items} | {one.wall:.1f}"
            f" | {base.wall / one.wall:.2f} | {one.driver:.1f} | {one.all_workers:.1f}"
            f" | {one.busiest:.1f} | {one.critical_path:.1f}"
            f" | {base.critical_path / one.critical_path:.2f} | {one.sent_once / 1e6:.2f}"
            f" | {one.sent_for_items / max(1, one.items) / 1e3:.2f} |"
        )
    return "\n".join(lines)


@prints_measured
def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 3, 4])
    parser.add_argument("--data", default=os.environ.get("LPZERO_DATA"))
    parser.add_argument("--cache", type=Path, default=default_folder())
    parser.add_argument("--json", type=Path, help="write the measurements here too")
    given = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start", flush=True)
    material = Material.of(given.data, given.cache)
    print(f"products and chains on {material.large.name}, chains on {CHAINED} of its rows")
    found: list[Timed] = []
    with tempfile.TemporaryDirectory() as folder:
        for n in given.workers:
            found += growth(n, material, Path(folder))
            print(f"{n} workers measured", flush=True)
    print(table_of(found))
    if given.json:
        from lpzero.files import write_json

        write_json(given.json, [asdict(one) for one in found])


if __name__ == "__main__":
    main()
