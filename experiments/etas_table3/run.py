"""ETAS Table 3 again: AutoFormer on CIFAR-100, Flowers and Chaoyang, with distillation.

    python -m experiments.etas_table3.run --jobs 2

The three tables share their architectures, so every network runs once. Interrupted, the same
command goes on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from lpzero.cli.output import data_option, jobs_option
from lpzero.parallel import Workers
from lpzero.proxies import Context
from lpzero.proxies.reproduction import reproduce, thin, write
from lpzero.rank import Ranking
from spaces.tables import load

SOURCE = "ETAS Table 3"
TABLES = ("autoformer-c100-kd", "autoformer-flowers-kd", "autoformer-chaoyang-kd")
COUNTERS = ("decoder-parameters", "attention-parameters", "depth", "depth-sqrt-width")


@click.command()
@click.option("--archs", type=int, help="Only so many, for a quick look.")
@click.option("--seeds", default=1, show_default=True, help="Of the weights.")
@click.option("--out", type=Path, default=Path("runs/etas_table3"), show_default=True)
@jobs_option
@data_option
def main(**given: Any) -> None:
    """Print our Table 3, one dataset after the other, and write it to OUT."""
    context = Context(workers=Workers(given["jobs"]), label="autoformer")
    for name in TABLES:
        table = thin(load(name, given["data"]), given["archs"])
        rows = reproduce(table, SOURCE, Ranking(context, given["seeds"]), COUNTERS)
        title = f"{SOURCE}, {name}, {len(table)} architectures"
        print(write(given["out"], name, rows, title).read_text())


if __name__ == "__main__":
    main()
