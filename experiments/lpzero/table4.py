"""LPZero Table 4 reproduced: GPT-2 on WikiText-103.

    python -m experiments.lpzero.table4 --jobs 2

After an interruption the same command continues.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from experiments.measured import prints_measured
from experiments.reproduction import reproduce, thin, write
from lpzero.cli.options import data_option, jobs_option
from lpzero.parallel import Workers
from lpzero.proxies import Context
from lpzero.proxies.ranking import Ranking
from spaces.tables import load

SOURCE = "LPZero Table 4"
ALSO = ("attention-parameters", "depth-sqrt-width", "ntkt", "sept", "dss++", "attention-saliency")


@click.command()
@click.option("--archs", type=int, help="Use only this many architectures, for a quick run.")
@click.option("--out", type=Path, default=Path("runs/lpzero_table4"), show_default=True)
@jobs_option
@data_option
@prints_measured
def main(**given: Any) -> None:
    """Print our Table 4 and write it to OUT."""
    table = thin(load("gpt2-wt103", given["data"]), given["archs"])
    ranking = Ranking(Context(workers=Workers(given["jobs"]), label="gpt2-wt103"))
    rows = reproduce(table, SOURCE, ranking, ALSO)
    title = f"{SOURCE}, {len(table)} architectures"
    print(write(given["out"], "gpt2-wt103", rows, title).read_text())


if __name__ == "__main__":
    main()
