"""ETAS on the three tables, restricted to their 100 architectures, by proxy and over seeds.

    python -m experiments.etas.table3_search --out runs/etas_table3/search

The rows of the paper's Table 2 (which trains on ImageNet) where accuracies can be looked up. The
paper draws 500 and makes 100 mutants; from a table of 100 that would be all of them, so the loop
is scaled down to draw a quarter. Every search has its own directory; after an interruption the same
command continues.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from experiments.etas.table3 import TABLES
from experiments.measured import prints_measured
from lpzero.cli.options import data_option, jobs_option
from lpzero.cli.printers import print_comparison
from lpzero.search import Request, Resources
from lpzero.search.comparison import compare
from lpzero.verbs.compare import result_of

PROXIES = ("none", "parameters", "sept", "ntkt", "dss", "ntsr", "depth-sqrt-width")
CONSTANTS = {"samples": 25, "mutants": 10, "iterations": 5}


@click.command()
@click.option("--table", "names", multiple=True, default=TABLES, show_default=True)
@click.option("--seeds", default=20, show_default=True)
@click.option("--out", type=Path, default=Path("runs/etas_table3/search"), show_default=True)
@jobs_option
@data_option
@prints_measured
def main(names: tuple[str, ...], seeds: int, out: Path, jobs: int, data: str | None) -> None:
    """Print the result of each proxy on each table."""
    for name in names:
        around = Resources(data=data, jobs=jobs, label=name)
        requests: list[Any] = [
            Request(
                "autoformer-tiny", "etas", proxy, evaluator="table", table=name, constants=CONSTANTS
            )
            for proxy in PROXIES
        ]
        found = compare(requests, seeds, around, out / name, resume=True)
        print(name)
        print_comparison(result_of(found, out / name), str(out / name))


if __name__ == "__main__":
    main()
