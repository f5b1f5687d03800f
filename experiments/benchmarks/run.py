"""The benchmarks, all or those that are named, one after the other, with a history.

    python -m experiments.benchmarks.run                 # all of them, hours
    python -m experiments.benchmarks.run speed extraction

Each compares its ways within one run, because a machine's speed changes within minutes: its ratios
hold, its seconds are of that day. What it prints is shown, and appended to OUT/history.jsonl with
the date, the version and the commit.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from datetime import datetime, timezone
from pathlib import Path

import click

from experiments.measured import prints_measured
from lpzero.version import VERSION

HERE = Path(__file__).resolve().parents[2]
# By name the modules that are run, with what they need; OUT is the folder of this run.
BENCHMARKS = {
    "speed": ("speed --out OUT/speed",),
    "branch-algebra": ("branch_algebra",),
    "extraction": ("extraction",),
    "search-budgets": ("search_budgets",),
    "capability": ("capability",),
    "growth": ("growth --out OUT/growth",),
    "cluster": ("cluster",),
    "dashboard": (
        "dashboard_runs OUT/many --runs 200 --evaluations 200000",
        "dashboard_opening OUT/many",
        "dashboard_cost",
    ),
}


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(BENCHMARKS)), metavar="[NAME]...")
@click.option("--out", type=click.Path(path_type=Path), default=Path("runs/benchmarks"))
@prints_measured
def main(names: tuple[str, ...], out: Path) -> None:
    """Run the benchmarks and keep what they print."""
    out.mkdir(parents=True, exist_ok=True)
    for name in names or BENCHMARKS:
        for line in BENCHMARKS[name]:
            module, *given = shlex.split(line.replace("OUT", shlex.quote(str(out))))
            command = [sys.executable, "-m", f"experiments.benchmarks.{module}", *given]
            start = time.perf_counter()
            done = subprocess.run(command, capture_output=True, text=True)
            click.echo(done.stdout if done.returncode == 0 else done.stderr)
            with (out / "history.jsonl").open("a", encoding="utf-8") as history:
                record = {
                    "benchmark": name,
                    "command": shlex.join(command[1:]),
                    "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
                    "version": VERSION,
                    "commit": _commit(),
                    "exit code": done.returncode,
                    "seconds": round(time.perf_counter() - start, 1),
                    "printed": done.stdout.splitlines(),
                }
                history.write(json.dumps(record) + "\n")


def _commit() -> str:
    """The commit of this tree, with a + if it has changes."""
    git = ["git", "-C", str(HERE), "describe", "--always", "--dirty=+", "--exclude=*"]
    return subprocess.run(git, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    main()
