"""LPZero Table 4 with the recipes of the public code beside the printed figures and ours.

    python -m experiments.lpzero.table4_released --batch 4 --length 192 --jobs 2

Values are kept in the cache, so that an interrupted run continues. Pearson's correlation is printed
too, because the paper prints it under the name of Spearman's in its Table 3. With `--same-batch`
ours run on the recipes' batch, not on the space's own: our GraSP is then the released one without
dropout.
"""

from __future__ import annotations

from typing import Any

import click

from experiments.measured import prints_measured
from experiments.released_columns import every, released_rows, released_table
from experiments.reproduction import thin
from lpzero.cli.options import data_option, jobs_option
from lpzero.parallel import Workers
from lpzero.proxies import Context
from spaces.minibatch import Minibatch
from spaces.tables import load

SOURCE = "LPZero Table 4"
RELEASED = (
    "grasp",
    "logsynflow",
    "attention-confidence",
    "activation-distance",
    "synflow",
    "eznas",
    "jacobian-cosine",
)


@click.command()
@click.option("--proxy", "names", multiple=True, default=RELEASED, show_default=True)
@click.option("--archs", type=int, help="Use this many architectures, spread over the targets.")
@click.option("--every", "step", type=click.IntRange(min=1), default=1, help="Every so many rows.")
@click.option("--batch", type=int, default=16, show_default=True)
@click.option("--length", type=int, default=192, show_default=True)
@click.option("--same-batch", "is_same", is_flag=True, help="Run ours on this batch, too.")
@jobs_option
@data_option
@prints_measured
def main(**given: Any) -> None:
    """Print the printed figures, those of the released recipes, and ours on the same rows."""
    table = every(thin(load("gpt2-wt103", given["data"]), given["archs"]), given["step"])
    batch = Minibatch(given["batch"], given["length"])
    context = Context(workers=Workers(given["jobs"]), label="gpt2-wt103")
    same = given["is_same"]
    rows = released_rows(table, SOURCE, given["names"], context, batch, is_same=same)
    print(released_table(rows))


if __name__ == "__main__":
    main()
