"""How work grows from 1 to 4 Dask workers on this machine, and what that means for 1,000.

    python -m experiments.benchmarks.cluster [--workers 1 2 3 4] [--repetitions 5]

Starts a scheduler and new workers of one thread on loopback for each number of workers and times,
once they have started and imported everything: `empty` (items that do nothing), `stats` (sketches
of nano-gpt2), `products` (every product of two terms), `chains` (branch tables of chains of two)
and `command` (all of `lpzero exhaust --terms 2`: products, permutations and the report, which the
driver makes alone). Where cores are busy or too few, wall times say little; the processor seconds
do. The critical path is those of the driver and of the busiest worker: what the wall time would be
if every process had a core of its own. With repetitions the numbers of workers take turns, and
medians are printed: a machine's speed changes within minutes. `cluster_model.py` extrapolates to a
thousand workers.
"""

from __future__ import annotations

import argparse
import io
import logging
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from statistics import median
from typing import Any

from experiments.benchmarks.cluster_model import EMPTY_WORK, Timed, extrapolated
from experiments.measured import prints_measured
from lpzero.cli.main import run
from lpzero.exhaust.run import ExhaustSettings, exhaust
from lpzero.parallel import Workers, stream
from lpzero.parallel.streams import SENT
from lpzero.scores.branch_table import branch_table
from lpzero.scores.chains import surviving
from lpzero.sketches.builder import Builder, Sketches, build, sketches
from lpzero.sketches.store import Store, cache_folder
from spaces.tables import Table, load, split

SMALL, LARGE = "nano-gpt2", "flexibert"
HERE = Path(__file__).resolve().parents[2]
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")  # one per worker
# As docs/cluster.md says: no profile of what workers do every 10 ms; event loops look every second
# instead of every 20 ms whether they are late. Settings of the environment come before these.
QUIET = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
}
CHAINED = 24  # architectures whose branch tables are built
EMPTY = 500  # items that do nothing
_PATIENCE = 60  # seconds for processes to start
WORK = (EMPTY_WORK, "stats", "products", "chains", "command")


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
def cluster(n: int, folder: Path) -> Iterator[Any]:
    """A client of a scheduler with n workers of one thread, every one a process of its own."""
    from distributed import Client

    folder.mkdir(parents=True)
    told = folder / "scheduler.json"
    place = ("--host", "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0")
    started = [_start(folder, "scheduler", *place, "--scheduler-file", str(told))]
    try:
        _wait_for(told)
        words = ("--nthreads", "1", "--no-dashboard", "--no-nanny", "--scheduler-file", str(told))
        started += [_start(folder, "worker", *words) for _ in range(n)]
        with Client(scheduler_file=str(told), set_as_default=False) as client:
            client.wait_for_workers(n, timeout=_PATIENCE)
            yield client
    finally:
        for process in reversed(started):
            process.kill()
            process.wait()


def _start(folder: Path, what: str, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", f"distributed.cli.dask_{what}", *words],
        cwd=folder,
        env={**QUIET, **os.environ, "PYTHONPATH": str(HERE), **dict.fromkeys(THREADS, "1")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _wait_for(path: Path) -> None:
    end = time.monotonic() + _PATIENCE
    while not path.exists() or not path.read_text(encoding="utf-8").rstrip().endswith("}"):
        if time.monotonic() > end:
            raise TimeoutError("the scheduler did not start")
        time.sleep(0.1)


def measure(work: str, client: Any, do: Callable[[Workers], None]) -> Timed:
    """Do it on the client's workers."""
    workers = Workers(backend="dask", scheduler=client.scheduler.address)
    log, traffic = logging.getLogger("lpzero.parallel.streams"), Traffic()
    log.addHandler(traffic)
    log.setLevel(logging.DEBUG)
    before, of_scheduler = client.run(time.process_time), client.run_on_scheduler(time.process_time)
    own, start = time.process_time(), time.perf_counter()
    do(workers)
    wall, driver = time.perf_counter() - start, time.process_time() - own
    scheduler = client.run_on_scheduler(time.process_time) - of_scheduler
    used = [now - before[where] for where, now in client.run(time.process_time).items()]
    log.removeHandler(traffic)
    once, for_items, items = traffic.sent
    busy = driver, scheduler, sum(used), max(used)
    return Timed(work, len(used), items, wall, *busy, once, for_items)


@dataclass(frozen=True)
class Material:
    """The tables and the sketches that the large one has."""

    small: Table
    large: Table
    found: Sketches
    data: str | None

    @staticmethod
    def of(data: str | None, cache: Path) -> Material:
        """Without released tables the small one is taken for both."""
        small = load(SMALL)
        large = load(LARGE, data) if data else small
        found = sketches(large, Builder(store=Store(cache), workers=Workers(os.cpu_count() or 1)))
        branch_table(found, surviving(1), None, Workers(os.cpu_count() or 1))
        return Material(small, large, found, data)

    def exhaust(self, folder: Path, *words: str) -> None:
        """Run the whole command on the large table."""
        asked = ["exhaust", self.large.name, "--terms", "2", "--out", str(folder), *words]
        asked += ["--cache", str(self.found.store.folder)]
        asked += ["--data", self.data] if self.data else []
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            code = run(asked)
        if code:
            raise RuntimeError(f"lpzero {' '.join(asked)} exited with {code}")


def growth(n: int, material: Material, folder: Path, names: Sequence[str]) -> list[Timed]:
    """The named pieces of work on n workers."""

    def stats(workers: Workers) -> None:
        table, store = material.small, Store(folder / f"sketches-{n}")
        build(table.space, table.archs, Builder(store=store, workers=workers))

    def products(workers: Workers) -> None:
        parts, asked = split(material.large, 0), ExhaustSettings(terms=2, workers=workers)
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

    def command(workers: Workers) -> None:
        where = "--backend", "dask", "--scheduler", str(workers.scheduler)
        material.exhaust(folder / f"run-{n}", *where)

    def empty(workers: Workers) -> None:
        for _ in stream(abs, range(EMPTY), workers):
            pass

    pieces = dict(zip(WORK, (empty, stats, products, chains, command), strict=True))
    with cluster(n, folder / f"dask-{n}") as client:
        measure("start", client, empty)  # connects, and imports what every worker needs
        client.run(_import_all)
        _import_all()
        assert len(set(client.run(os.getpid).values()) - {os.getpid()}) == n
        return [measure(name, client, pieces[name]) for name in names]


def _import_all() -> None:
    import lpzero.statistics.extraction
    import lpzero.verbs.exhaust  # noqa: F401


def medians(found: list[Timed]) -> list[Timed]:
    """Of each piece of work on each number of workers the median of every number."""
    alike: dict[tuple[str, int], list[Timed]] = {}
    for one in found:
        alike.setdefault((one.work, one.workers), []).append(one)
    names = [field.name for field in fields(Timed) if field.name not in ("work", "workers")]
    return [
        replace(some[0], **{name: median(getattr(one, name) for one in some) for name in names})
        for some in alike.values()
    ]


def table_of(found: list[Timed]) -> str:
    """The measurements as Markdown."""
    head = (
        "| work | workers | items | wall s | wall, times as fast | driver CPU s | scheduler CPU s |"
        " workers' CPU s | busiest worker s | critical path s | critical path, times as fast |"
        " MB once per worker | kB per item |"
    )
    lines = [head, "|---|" + "---:|" * 12]
    first = {one.work: one for one in found if one.workers == min(o.workers for o in found)}
    for one in sorted(found, key=lambda one: (one.work, one.workers)):
        base = first[one.work]
        lines.append(
            f"| {one.work} | {one.workers} | {one.items} | {one.wall:.1f}"
            f" | {base.wall / one.wall:.2f} | {one.driver:.2f} | {one.scheduler:.2f}"
            f" | {one.all_workers:.1f}"
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
    parser.add_argument("--work", nargs="+", choices=WORK, default=list(WORK))
    parser.add_argument("--repetitions", type=int, default=1)
    parser.add_argument("--data", default=os.environ.get("LPZERO_DATA"))
    parser.add_argument("--cache", type=Path, default=cache_folder())
    parser.add_argument("--json", type=Path, help="write the measurements here too")
    given = parser.parse_args()
    names = list(dict.fromkeys((EMPTY_WORK, *given.work)))  # what an item costs is always needed
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start", flush=True)
    material = Material.of(given.data, given.cache)
    print(f"products and chains on {material.large.name}, chains on {CHAINED} of its rows")
    found: list[Timed] = []
    with tempfile.TemporaryDirectory() as folder:
        material.exhaust(Path(folder) / "ready")  # stores what every later command looks up
        for repetition in range(given.repetitions):
            place = Path(folder) / str(repetition)
            for n in given.workers if repetition % 2 == 0 else given.workers[::-1]:
                for one in growth(n, material, place, names):
                    found.append(one)
                    print(f"{one.work}, {n} workers: {one.wall:.2f} s", flush=True)
    found = medians(found)
    print(f"\n{table_of(found)}\n\n{extrapolated(found)}\n")
    if given.json:
        from lpzero.files import write_json

        write_json(given.json, [asdict(one) for one in found])


if __name__ == "__main__":
    main()
