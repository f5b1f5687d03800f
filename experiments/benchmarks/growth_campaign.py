"""One campaign, and what it had taken when so many formulas were evaluated.

table, cache  ->  a line of JSON per number of evaluations: candidates tried, seconds, processor
                  seconds, peak memory
"""

from __future__ import annotations

import json
import resource
import time
from pathlib import Path

import click

import lpzero
from experiments.benchmarks.growth_material import TARGET
from experiments.benchmarks.growth_space import SPACE
from lpzero.discover.campaign import Progress
from lpzero.discover.discovery import Campaign
from lpzero.discover.settings import Settings


class Marks:
    """A callback of the campaign that writes a line at each of these numbers of evaluations."""

    def __init__(self, path: Path, at: list[int]) -> None:
        self.path, self.left, self.start = path, sorted(at), time.perf_counter()

    def __call__(self, progress: Progress) -> None:
        while self.left and progress.evaluated >= self.left[0]:
            line = {
                "size": self.left.pop(0),
                "tried": progress.tried,
                "wall": time.perf_counter() - self.start,
                "cpu": time.process_time(),
                "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            }
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")


@click.command()
@click.argument("table", type=click.Path(path_type=Path))
@click.argument("marks", type=click.Path(path_type=Path))
@click.argument("evaluations", type=int, nargs=-1, required=True)
@click.option("--cache", required=True)
@click.option("--out", required=True)
def main(table: Path, marks: Path, evaluations: tuple[int, ...], cache: str, out: str) -> None:
    """Run the campaign with the default settings until all EVALUATIONS are reached."""
    usual = Settings()
    wanted = max(evaluations) - usual.population
    Campaign(
        lpzero.load_table(table, space=SPACE, target=TARGET),
        cache=cache,
        out=out,
        callbacks=[Marks(marks, list(evaluations))],
        generations=-(-wanted // usual.offspring),
    ).run()


if __name__ == "__main__":
    main()
