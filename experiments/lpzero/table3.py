"""LPZero Table 3 reproduced: FlexiBERT, in the public code's setting and in the true one.

    python -m experiments.lpzero.table3 --jobs 2

The public code built every model with hidden 256 and FFN 1024 regardless of the architecture
(space flexibert-upstream); the true setting builds each architecture as specified. After an
interruption the same command continues.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from experiments.measured import prints_measured
from experiments.reproduction import reproduce, thin, write
from lpzero.arrays import FloatArray
from lpzero.cli.options import data_option, jobs_option
from lpzero.judgement.correlation import spearman
from lpzero.parallel import Workers
from lpzero.proxies import Context
from lpzero.proxies.ranking import Ranking
from spaces.tables import load

SOURCE = "LPZero Table 3"
ALSO = (
    "lpzero-flexibert-typeset",
    "depth",
    "depth-sqrt-width",
    "decoder-parameters",
    "ntkt",
    "dss++",
    "attention-saliency",
)
DRAWS = 1000
SETTINGS = {"public": "flexibert-upstream", "true": "flexibert"}


@click.command()
@click.option("--archs", type=int, help="Use only this many architectures, for a quick run.")
@click.option("--out", type=Path, default=Path("runs/lpzero_table3"), show_default=True)
@jobs_option
@data_option
@prints_measured
def main(**given: Any) -> None:
    """Print our Table 3 in both settings and write it to OUT."""
    for setting, space in SETTINGS.items():
        table = thin(load("flexibert", given["data"], space), given["archs"])
        ranking = Ranking(Context(workers=Workers(given["jobs"]), label=f"{setting} setting"))
        rows = reproduce(table, SOURCE, ranking, ALSO)
        title = f"{SOURCE}, {setting} setting, {len(table)} architectures"
        print(write(given["out"], setting, rows, title).read_text())
    depths = np.array([table.space.depth(arch) for arch in table.archs], dtype=np.float64)
    mean, spread = untied(depths, table.targets)
    print(f"depth with its ties broken at random, {DRAWS} draws: {mean:.3f} ± {spread:.3f}")


def untied(scores: FloatArray, targets: FloatArray) -> tuple[float, float]:
    """Mean and deviation of rho over random orders of equal scores."""
    rng = np.random.default_rng(0)
    rhos = []
    for _ in range(DRAWS):
        order = np.lexsort((rng.random(len(scores)), scores))
        places = np.empty(len(scores))
        places[order] = np.arange(len(scores))
        rhos.append(spearman(places, targets))
    return float(np.mean(rhos)), float(np.std(rhos))


if __name__ == "__main__":
    main()
