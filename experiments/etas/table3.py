"""ETAS Table 3 reproduced: AutoFormer on CIFAR-100, Flowers and Chaoyang, with distillation.

    python -m experiments.etas.table3 --jobs 2

Besides the correlations it prints the best accuracy among the few architectures that a search would
train first, those with the highest scores. The three tables share their architectures, so every
network runs once. After an interruption the same command continues.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from experiments.measured import prints_measured
from experiments.reproduction import markdown, reproduce, thin, write
from lpzero.cli.options import data_option, jobs_option
from lpzero.parallel import Workers
from lpzero.proxies import Context, Measurements, get
from lpzero.proxies.ranking import Ranking
from spaces.tables import load

SOURCE = "ETAS Table 3"
TABLES = ("autoformer-c100-kd", "autoformer-flowers-kd", "autoformer-chaoyang-kd")
COUNTERS = ("decoder-parameters", "attention-parameters", "depth", "depth-sqrt-width")
TRAINED = (1, 3, 10)
TIES = 200  # orders of equal scores that are averaged


@click.command()
@click.option("--archs", type=int, help="Use only this many architectures, for a quick run.")
@click.option("--seeds", default=1, show_default=True, help="The number of seeds of the weights.")
@click.option("--out", type=Path, default=Path("runs/etas_table3"), show_default=True)
@jobs_option
@data_option
@prints_measured
def main(**given: Any) -> None:
    """Print our Table 3 for each dataset and write it to OUT."""
    measurements = Measurements(Context(workers=Workers(given["jobs"]), label="autoformer"))
    for name in TABLES:
        table = thin(load(name, given["data"]), given["archs"])
        rows = reproduce(table, SOURCE, Ranking(measurements.context, given["seeds"]), COUNTERS)
        title = f"{SOURCE}, {name}, {len(table)} architectures"
        page = write(given["out"], name, rows, title)
        with page.open("a", encoding="utf-8") as file:
            file.write("\n## The best accuracy among the highest scores\n\n")
            file.write(
                markdown(searched(table, [row["proxy"] for row in rows], measurements), COLUMNS)
            )
        print(page.read_text())


COLUMNS = ("proxy", *(f"best of {n}" for n in TRAINED))


def searched(
    table: Any, proxies: Sequence[str], measurements: Measurements
) -> list[dict[str, Any]]:
    """For each proxy the best target among its highest scores; drawing at random comes first."""
    rows = [_row("at random", [expected_best(table.targets, n) for n in TRAINED])]
    for name in proxies:
        scores = get(name).score(table.space, table.archs, measurements)
        rows.append(_row(name, [best_of_first(scores, table.targets, n) for n in TRAINED]))
    top = float(table.targets.max())
    return [*rows, _row("the table's best", [top] * len(TRAINED))]


def _row(name: str, found: Sequence[float]) -> dict[str, Any]:
    return dict(zip(COLUMNS, (name, *found), strict=True))


def best_of_first(scores: Any, targets: Any, n: int) -> float:
    """The best target among the n highest scores, averaged over orders of equal scores."""
    rng = np.random.default_rng(0)
    orders = (np.lexsort((rng.random(len(scores)), -scores)) for _ in range(TIES))
    return float(np.mean([targets[order[:n]].max() for order in orders]))


def expected_best(targets: Any, n: int) -> float:
    """The expected best of n drawn without replacement."""
    ordered, size = np.sort(targets)[::-1], len(targets)
    # The i-th best is the best drawn if the other n - 1 are among those after it.
    chances = [math.comb(size - 1 - i, n - 1) / math.comb(size, n) for i in range(size)]
    return float(ordered @ np.array(chances))


if __name__ == "__main__":
    main()
