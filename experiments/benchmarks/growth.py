"""How time and memory grow with the rows of a table and with the evaluations of a campaign.

python -m experiments.benchmarks.growth

Tables of --rows architectures go through `lpzero exhaust --unaries 1` from sketches, and one
campaign is watched until it has made --evaluations. What is measured is kept in --out as soon as it
is done, so that a stopped run continues.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from experiments.benchmarks.growth_material import TARGET, architectures, link_sketches, write_table
from experiments.benchmarks.processes import run
from experiments.measured import prints_measured
from experiments.reproduction import markdown
from experiments.resumable import Row, resume
from lpzero.sketches.store import Store

HERE = Path(__file__).resolve().parents[2]
ROWS = (2_500, 5_000, 10_000, 20_000)
EVALUATIONS = (25_000, 50_000, 100_000, 200_000)
CAMPAIGN_ROWS = 200
_SPACE = "experiments.benchmarks.growth_space:SPACE"
_NOTHING: Row = {"size": 0, "cpu": 0.0, "tried": 0}
_TABLE, _CAMPAIGN, _REPORT = "architectures", "evaluations", "evaluations, with the report"


@click.command()
@click.option("--rows", multiple=True, type=int, default=ROWS, show_default=True)
@click.option("--evaluations", multiple=True, type=int, default=EVALUATIONS, show_default=True)
@click.option("--jobs", type=int, default=os.cpu_count(), help="Processes of an exhaustive run.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("runs/growth"))
@prints_measured
def main(rows: tuple[int, ...], evaluations: tuple[int, ...], jobs: int, out: Path) -> None:
    """Print seconds and memory of every size, and what each further row or evaluation takes."""
    bench = _Bench(out.resolve(), jobs)
    keys = [f"{_TABLE} {n} {jobs}" for n in rows]
    keys += ["campaign " + " ".join(map(str, evaluations))] if evaluations else []
    found = resume(out / "measurements.jsonl", keys, bench.measure)
    print(markdown(list(_lines(found)), _COLUMNS))


class _Bench:
    """A folder with the tables, their sketches and the runs."""

    def __init__(self, out: Path, jobs: int) -> None:
        self.out, self.jobs = out, jobs

    def measure(self, key: str) -> list[Row]:
        """An exhaustive run, or a campaign at each number of evaluations."""
        kind, *numbers = key.split()
        if kind == _TABLE:
            found = self._exhaust(int(numbers[0]))
        else:
            found = self._campaign([int(number) for number in numbers])
        for row in found:
            print(f"{row['size']:,} {row['of']}: {_told(row)}", flush=True)
        return found

    def _exhaust(self, n: int) -> list[Row]:
        """The run from sketches alone; they are made first and not timed."""
        cache = self._cache(n)
        for path in cache.rglob("*.branches"):
            path.unlink()
        options = f"--space {_SPACE} --target {TARGET} --unaries 1 --jobs {self.jobs}".split()
        used = self._run("lpzero.cli.main", "exhaust", str(self._path(n)), *options, cache=cache)
        return [{"of": _TABLE, "size": n, **used}]

    def _campaign(self, evaluations: Sequence[int]) -> list[Row]:
        """The campaign at each mark, and the whole of it; branch tables are made first."""
        cache, table = self._cache(CAMPAIGN_ROWS), str(self._path(CAMPAIGN_ROWS))
        marks = self.out / "marks.jsonl"
        marks.unlink(missing_ok=True)
        self._run("experiments.benchmarks.growth_campaign", table, os.devnull, "1", cache=cache)
        wanted = map(str, evaluations)
        used = self._run(
            "experiments.benchmarks.growth_campaign", table, str(marks), *wanted, cache=cache
        )
        found = [json.loads(line) for line in marks.read_text(encoding="utf-8").splitlines()]
        rows = [{"of": _CAMPAIGN, **mark} for mark in found]
        return [*rows, {"of": _REPORT, "size": max(evaluations), **used}]

    def _run(self, module: str, *words: str, cache: Path) -> dict[str, Any]:
        environment = {**os.environ, "PYTHONPATH": str(HERE)}
        with tempfile.TemporaryDirectory(dir=self.out) as folder:
            where = ["--cache", str(cache), "--out", str(Path(folder) / "run")]
            return asdict(run([sys.executable, "-m", module, *words, *where], HERE, environment))

    def _path(self, n: int) -> Path:
        return self.out / f"table-{n}.csv"

    def _cache(self, n: int) -> Path:
        """The folder with the sketches of the first n architectures, which is made if need be."""
        cache = self.out / "cache"
        if not self._path(n).exists():
            archs = architectures(n)
            link_sketches(Store(cache), archs)
            write_table(self._path(n), archs)
        return cache


_COLUMNS = (
    "size",
    "of",
    "seconds",
    "CPU seconds",
    "CPU ms each",
    "CPU ms each further",
    "tried each further",
    "MB",
)


def _told(row: Row) -> str:
    return f"{row['wall']:.1f} s, {row['cpu']:.1f} CPU s, {row['peak']:.0f} MB"


def _lines(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """A line per measurement; each further row or evaluation is compared with the size before."""
    before: dict[str, Row] = {}
    for row in rows:
        last = before.get(row["of"], _NOTHING)
        before[row["of"]] = row
        yield {
            "size": f"{row['size']:,}",
            "of": row["of"],
            "seconds": f"{row['wall']:.1f}",
            "CPU seconds": f"{row['cpu']:.1f}",
            "CPU ms each": _milliseconds(row, _NOTHING),
            "CPU ms each further": "" if last is _NOTHING else _milliseconds(row, last),
            "tried each further": _tried(row, last),
            "MB": f"{row['peak']:.0f}",
        }


def _milliseconds(row: Row, before: Row) -> str:
    return f"{1000 * (row['cpu'] - before['cpu']) / (row['size'] - before['size']):.2f}"


def _tried(row: Row, before: Row) -> str:
    """Candidates of a campaign per evaluation, with those pruned and repeated."""
    if "tried" not in row:
        return ""
    return f"{(row['tried'] - before['tried']) / (row['size'] - before['size']):.2f}"


if __name__ == "__main__":
    main()
