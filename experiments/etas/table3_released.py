"""DSS of ETAS's Table 3 in three columns: printed, by the predecessor's public code, and ours.

    python -m experiments.etas.table3_released --every 5

Of the table's proxies only DSS has public code of its authors whose recipe differs from ours. The
three tables share their architectures, so every network runs once; an interrupted run continues.
"""

from __future__ import annotations

from typing import Any

import click

from experiments.measured import prints_measured
from experiments.released_columns import COLUMNS, every, released_rows, released_table
from lpzero.cli.options import data_option, jobs_option
from lpzero.parallel import Workers
from lpzero.proxies import Context
from spaces.tables import load

SOURCE = "ETAS Table 3"
TABLES = ("autoformer-c100-kd", "autoformer-flowers-kd", "autoformer-chaoyang-kd")


@click.command()
@click.option("--every", "step", type=click.IntRange(min=1), default=1, help="Every so many rows.")
@jobs_option
@data_option
@prints_measured
def main(**given: Any) -> None:
    """Print the printed figures, those of the released recipe, and ours on the same rows."""
    context = Context(workers=Workers(given["jobs"]), label="autoformer")
    rows = []
    for name in TABLES:
        table = every(load(name, given["data"]), given["step"])
        rows += [{**row, "table": name} for row in released_rows(table, SOURCE, ["dss"], context)]
    print(released_table(rows, ("table", *COLUMNS)))


if __name__ == "__main__":
    main()
