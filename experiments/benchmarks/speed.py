"""Every job in the tree before the work on speed and in this one, alternating: ratios first.

python -m experiments.benchmarks.speed

The tree before is a git worktree in --out, run by the same Python with the same packages. Each tree
has a cache of its own, to which the sketches of --cache are linked. Every repetition is kept in
--out as soon as it is done, so that a stopped run continues; --job chooses.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from experiments.benchmarks.processes import run
from experiments.benchmarks.speed_jobs import COLUMNS, JOBS, Job
from experiments.measured import prints_measured
from experiments.reproduction import markdown
from experiments.resumable import Row, resume
from lpzero.cli.options import cache_option, data_option
from lpzero.sketches.store import cache_folder
from spaces.tables import load
from spaces.tables.registry import data_root

BEFORE, AFTER = "before", "after"
SIDES = (BEFORE, AFTER)
COMMIT = "c4fa3b5"
HERE = Path(__file__).resolve().parents[2]
MEASURES = {"wall": "seconds", "cpu": "CPU seconds", "peak": "MB"}


@click.command()
@click.option("--before", "commit", default=COMMIT, show_default=True, help="The commit before.")
@click.option(
    "--job", "chosen", multiple=True, type=click.Choice(list(JOBS)), help="[default: all]"
)
@click.option("--out", type=click.Path(path_type=Path), default=Path("runs/speed"))
@cache_option
@data_option
@prints_measured
def main(
    commit: str, chosen: tuple[str, ...], out: Path, cache: str | None, data: str | None
) -> None:
    """Print how many times as fast every job is, and the seconds and memory behind it."""
    out = out.resolve()
    trees = {BEFORE: _checkout(out / "tree", commit), AFTER: HERE}
    names = list(chosen or JOBS)
    bench = _Bench(trees, out, cache_folder(cache), data)
    keys = [key for name in names for key in _keys(name, JOBS[name], commit)]
    rows = resume(out / "repetitions.jsonl", keys, bench.measure)
    print(markdown([_line(name, rows) for name in names], _COLUMNS))


def _keys(name: str, job: Job, commit: str) -> Iterator[str]:
    """A key per repetition; trees take turns at being first."""
    for repetition in range(job.repetitions):
        for side in SIDES if repetition % 2 == 0 else SIDES[::-1]:
            yield f"{name} {side if side == AFTER else commit} {repetition}"


class _Bench:
    """Both trees, each with a cache."""

    def __init__(self, trees: dict[str, Path], out: Path, cache: Path, data: str | None) -> None:
        self.trees, self.out, self.cache, self.data = trees, out, cache, data
        self._is_ready: set[tuple[str, str]] = set()

    def measure(self, key: str) -> list[Row]:
        """One repetition."""
        name, commit, _ = key.split()
        job, side = JOBS[name], AFTER if commit == AFTER else BEFORE
        if (name, side) not in self._is_ready:
            for table in job.tables:
                self._link(load(table, self.data).space.name, side)
                self._run(job, ("stats", table), side)
            for command in job.ready:
                if "RUN" not in command or not self._kept_run(side).exists():
                    self._run(job, command, side)
            if not (job.tables or job.ready):  # compiled modules are no part of the comparison
                self._run(job, job.command if _is_code(job.command) else ("--help",), side)
            self._is_ready.add((name, side))
        if job.from_sketches:
            for kind in ("*.branches", "*.scores.json"):
                for path in self._cache(side).rglob(kind):
                    path.unlink()
        return [{"job": name, "side": side, **self._run(job, job.command, side)}]

    def _run(self, job: Job, command: Sequence[str], side: str) -> dict[str, Any]:
        started = ["-c"] if _is_code(command) else ["-m", "lpzero.cli.main"]
        with tempfile.TemporaryDirectory(dir=self.out) as folder:
            # Searches run networks that no cache knows, however often they are timed.
            cache = self._cache(side) if job.tables else Path(folder) / "cache"
            environment = {**os.environ, "LPZERO_CACHE": str(cache)}
            environment.pop("PYTHONPATH", None)
            if self.data:
                environment["LPZERO_DATA"] = self.data
            places = {"OUT": str(Path(folder) / "run"), "RUN": str(self._kept_run(side))}
            given = [places.get(part, part) for part in command]
            if any(part.startswith("DATA/") for part in given):
                given = [part.replace("DATA", str(self._data_folder()), 1) for part in given]
            given += job.now if side == AFTER and command[0] == job.command[0] else ()
            usage = run([sys.executable, *started, *given], self.trees[side], environment)
            measured = asdict(usage)
            last_line = measured.pop("last_line")
            if job.counts is not None and command == job.command:
                count, seconds = last_line.split()
                measured |= {"count": int(count), "cpu": float(seconds)}
            return measured

    def _data_folder(self) -> Path:
        folder = data_root(self.data)
        if folder is None:
            raise click.UsageError(f"the job reads {COLUMNS}: give its folder with --data")
        return folder.resolve()  # jobs run inside their tree

    def _kept_run(self, side: str) -> Path:
        return self.out / f"run-{side}"

    def _cache(self, side: str) -> Path:
        return self.out / f"cache-{side}"

    def _link(self, space: str, side: str) -> None:
        """Link the space's sketches to the tree's cache; those that are missing are extracted."""
        for path in (self.cache / space).rglob("*.sketch"):
            place = self._cache(side) / path.relative_to(self.cache)
            place.parent.mkdir(parents=True, exist_ok=True)
            if place.exists():
                continue
            try:
                place.hardlink_to(path)
            except OSError:  # another file system
                shutil.copyfile(path, place)


def _is_code(command: Sequence[str]) -> bool:
    """Whether the command is Python code instead of words of `lpzero`."""
    return " " in command[0]


def _checkout(folder: Path, commit: str) -> Path:
    """The commit in a folder of its own."""
    git = ["git", "-C", str(HERE), "worktree"]
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([*git, "prune"], check=True)
        add = [*git, "add", "--detach", str(folder), commit]
        subprocess.run(add, check=True, capture_output=True)
    subprocess.run(["git", "-C", str(folder), "checkout", "-q", commit], check=True)
    return folder


_RATES = "per CPU second before, after: ratio"
_COLUMNS = (
    "job",
    "times as fast",
    "CPU ratio",
    *(f"{unit} {side}" for unit in MEASURES.values() for side in SIDES),
    _RATES,
    "repetitions",
)


def _line(name: str, rows: Sequence[Row]) -> dict[str, Any]:
    """Medians over repetitions and their ratios."""
    medians: dict[str, dict[str, float]] = {}
    for side in SIDES:
        found = [row for row in rows if row["job"] == name and row["side"] == side]
        medians[side] = {key: statistics.median(row[key] for row in found) for key in MEASURES}
    ratios = {key: medians[BEFORE][key] / medians[AFTER][key] for key in MEASURES}
    line = {"job": JOBS[name].name, "times as fast": f"{ratios['wall']:.1f}"}
    line["CPU ratio"] = f"{ratios['cpu']:.1f}"
    for key, unit in MEASURES.items():
        digits = 0 if key == "peak" else 2
        line |= {f"{unit} {side}": f"{medians[side][key]:.{digits}f}" for side in SIDES}
    counts = JOBS[name].counts
    if counts is not None:
        rates = [_rate(name, side, rows) for side in SIDES]
        line[_RATES] = f"{rates[0]:,.0f}, {rates[1]:,.0f} {counts}: {rates[1] / rates[0]:.1f}"
    return line | {"repetitions": JOBS[name].repetitions}


def _rate(name: str, side: str, rows: Sequence[Row]) -> float:
    """The median of what the job counts in a processor second."""
    of_side = (row for row in rows if row["job"] == name and row["side"] == side)
    return statistics.median(row["count"] / row["cpu"] for row in of_side)


if __name__ == "__main__":
    main()
