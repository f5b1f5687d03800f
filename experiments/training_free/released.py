"""Figures 2 and 11 in three columns: printed, by the recipes of the public code, and ours.

    python -m experiments.training_free.released --every 5 --batch 16 --length 64

The paper prints Kendall's tau, and Pearson's correlation as rho. All models have the published
dimensions. Values are kept in the cache, so that an interrupted run continues.
"""

from __future__ import annotations

from typing import Any

import click

from experiments.measured import prints_measured
from experiments.released_columns import every, released_rows, released_table
from lpzero.cli.options import data_option, jobs_option
from lpzero.parallel import Workers
from lpzero.proxies import Context
from spaces.minibatch import Minibatch
from spaces.tables import load

SOURCE = "Training-free, section 5.2"
NAMES = (
    "attention-confidence",
    "attention-confidence-normalised",
    "parameters",
    "activation-distance",
    "jacobian-cosine",
    "jacobian-cosine-large-noise",
    "jacobian-cosine-more-noised",
)
COLUMNS = (
    "proxy",
    "n",
    "printed tau",
    "its tau",
    "Pearson of released",
    "our tau",
    "Pearson of ours",
)


@click.command()
@click.option("--every", "step", type=click.IntRange(min=1), default=1, help="Every so many rows.")
@click.option("--batch", type=int, default=128, show_default=True)
@click.option("--length", type=int, default=64, show_default=True)
@jobs_option
@data_option
@prints_measured
def main(**given: Any) -> None:
    """Print the printed figures, those of the released recipes, and ours on the same rows."""
    table = every(load("flexibert", given["data"], "flexibert-upstream"), given["step"])
    context = Context(workers=Workers(given["jobs"]), label="flexibert")
    batch = Minibatch(given["batch"], given["length"])
    print(released_table(released_rows(table, SOURCE, NAMES, context, batch), COLUMNS))


if __name__ == "__main__":
    main()
