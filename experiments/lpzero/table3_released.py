"""LPZero Table 3 in three columns: printed, by the recipes of the public code, and ours.

    python -m experiments.lpzero.table3_released --every 5 --batch 16 --length 64

All models have the published dimensions. The paper prints Pearson's correlation, without its sign,
under the name of Spearman's: compare the printed figure with the magnitude of Pearson's. The
published formula is scored with H as the authors' code takes it (`--definitions released`). Values
are kept in the cache, so that an interrupted run continues.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from experiments.measured import prints_measured
from experiments.released_columns import every, figures_of, released_rows, released_table
from lpzero.cli.options import data_option, jobs_option
from lpzero.parallel import Workers
from lpzero.proxies import Context, Measurements, get
from lpzero.proxies.published import printed_in
from lpzero.statistics import RELEASED
from spaces.minibatch import Minibatch
from spaces.tables import load

if TYPE_CHECKING:
    from lpzero.proxies.ranking import Row
    from spaces.tables import Table

SOURCE = "LPZero Table 3"
FORMULA = "lpzero-flexibert"


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
    names = list(printed_in(table.name, SOURCE))
    batch = Minibatch(given["batch"], given["length"])
    rows = released_rows(table, SOURCE, names, context, batch)
    for row in rows:
        if row["proxy"] == FORMULA:
            row |= _formula(table, context)
    print(released_table(rows))


def _formula(table: Table, context: Context) -> Row:
    measurements = Measurements(replace(context, definitions=RELEASED))
    scores = get(FORMULA).score(table.space, table.archs, measurements)
    return figures_of(scores, table.targets, "released recipe", "Pearson of released", "its tau")


if __name__ == "__main__":
    main()
