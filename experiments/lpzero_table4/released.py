"""LPZero Table 4 with the recipes of the public code beside the printed figures and ours.

    python -m experiments.lpzero_table4.released --batch 4 --length 192 --jobs 2

Values are kept in the cache. Pearson's correlation is printed too, because the paper prints it
under the name of Spearman's in its Table 3.
"""

from __future__ import annotations

from typing import Any

import click
import numpy as np

from experiments.measured import prints_measured
from experiments.reproduction import markdown, thin
from lpzero.cli.output import data_option, jobs_option
from lpzero.judgement.correlation import spearman
from lpzero.parallel import Workers
from lpzero.proxies import Context, Measurements, get
from lpzero.proxies.published import printed_in
from lpzero.proxies.ranking import Row, prefetch
from spaces.minibatch import Minibatch
from spaces.tables import load

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
@click.option("--archs", type=int, help="Use only this many architectures, for a quick run.")
@click.option("--batch", type=int, default=16, show_default=True)
@click.option("--length", type=int, default=192, show_default=True)
@jobs_option
@data_option
@prints_measured
def main(**given: Any) -> None:
    """Print the printed figures and those of the released recipes."""
    table = thin(load("gpt2-wt103", given["data"]), given["archs"])
    batch = Minibatch(given["batch"], given["length"])
    context = Context(workers=Workers(given["jobs"]), label="gpt2-wt103", batch=batch)
    measurements = Measurements(context)
    printed = printed_in(table.name, "LPZero Table 4")
    proxies = [get(f"{name}-released") for name in given["names"]]
    prefetch(table, proxies, measurements)
    rows: list[Row] = []
    for name, proxy in zip(given["names"], proxies, strict=True):
        scores = proxy.score(table.space, table.archs, measurements)
        known = np.isfinite(scores)
        x, y = scores[known], table.targets[known]
        row = {"proxy": proxy.name, "n": int(known.sum()), "printed": printed[name].rho}
        row |= {"rho": spearman(x, y), "pearson": float(np.corrcoef(x, y)[0, 1])}
        rows.append(row)
    print(markdown(rows, ("proxy", "n", "printed", "rho", "pearson")))


if __name__ == "__main__":
    main()
