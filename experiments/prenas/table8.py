"""Mean best rank of one-pass SNIP among the isomers of a released table (PreNAS, Table 8).

PreNAS trains a supernet and compares thousands of isomers; released tables have a handful, so
the value of random scores is printed with every result.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import click
import numpy as np

from experiments.measured import prints_measured
from lpzero.arrays import FloatArray
from lpzero.cli.options import data_option, format_option
from lpzero.cli.output import print_rows
from lpzero.supernet import Isomers, Saliency, isomers, mean_best_rank
from spaces.tables import load, names

DRAWS = 2000


@click.command()
@click.option(
    "--seeds", default=5, show_default=True, help="The number of seeds of weights and batch."
)
@format_option
@data_option
@prints_measured
def main(seeds: int, form: str, data: str | None) -> None:
    """Print mBR of SNIP, plain and normalised by layer, and of a random choice."""
    tables = [load(name, data) for name in names() if name.startswith("autoformer-")]
    archs, space = tables[0].archs, tables[0].space
    passes = [Saliency.of(space, seed=seed, batch_seed=seed) for seed in range(seeds)]
    groups = [isomers(space, arch) for arch in archs]
    sizes = Counter(n for n in Counter(groups).values() if n > 1)
    print_rows([{"isomers": n, "groups": sizes[n]} for n in sorted(sizes)], form)
    rows = []
    for table in tables:
        assert table.archs == archs
        row: dict[str, object] = {"table": table.name}
        for what, normalised in (("SNIP", False), ("by layer", True)):
            found = [
                mean_best_rank(one.scores(archs, normalised), table.targets, groups)
                for one in passes
            ]
            row[what] = f"{np.mean(found):.2f} ({min(found):.2f} to {max(found):.2f})"
        row["chance"] = "{:.2f} ± {:.2f}".format(*_chance(table.targets, groups))
        rows.append(row)
    print_rows(rows, form)


def _chance(targets: FloatArray, groups: Sequence[Isomers]) -> tuple[float, float]:
    """Mean and standard deviation of the mBR of random scores."""
    rng = random.Random(0)
    drawn = [
        mean_best_rank(np.array([rng.random() for _ in groups]), targets, groups)
        for _ in range(DRAWS)
    ]
    return float(np.mean(drawn)), float(np.std(drawn))


if __name__ == "__main__":
    main()
