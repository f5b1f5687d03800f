"""How far the gains and the selection of PreNAS repeat with other weights of the supernet.

    python -m experiments.prenas.stability

For every space: rho between seeds of the layer-normalised gains that elect isomers, and of the same
without normalisation, within heads and within ratios; how many of the choices of the elected
isomers of 200 groups are in the same layer, and how many isomers are the same as a whole, when the
gains of disjoint sets of seeds are averaged.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import click
import numpy as np

import spaces
from experiments.measured import prints_measured
from experiments.reproduction import markdown
from lpzero.supernet import Saliency, isomers
from lpzero.supernet.isomers import GROUPINGS, best_places
from lpzero.supernet.saliency import Gains, agreement, mean_rho
from lpzero.supernet.selection import n_groups

COLUMNS = (
    "space", "grouping", "groups", "averaged", "gains", "plain gains", "same layers", "same whole",
)  # fmt: skip
N_DRAWN = 200


@click.command()
@click.option("--space", "names", multiple=True, default=("autoformer-tiny",), show_default=True)
@click.option("--seeds", default=6, show_default=True, help="Passes of the supernet.")
@prints_measured
def main(names: tuple[str, ...], seeds: int) -> None:
    """Print the stability of each space."""
    rows = [row for name in names for row in stability(name, seeds)]
    click.echo(markdown(rows, COLUMNS))


def stability(name: str, seeds: int) -> Iterator[dict[str, Any]]:
    """A row for each grouping and each number of passes that are averaged."""
    space = spaces.get(name)
    passes = [Saliency.of(space, seed=seed) for seed in range(seeds)]
    rng = random.Random(0)
    drawn = [space.sample(rng) for _ in range(N_DRAWN)]
    groups = list(dict.fromkeys(isomers(space, arch) for arch in drawn))
    width, depth = max(passes[0].sharing.frames())
    plain = [
        mean_rho([np.diff(one.table(factor, width, depth), axis=1).reshape(-1) for one in passes])
        for factor in passes[0].sharing.parts
    ]
    for grouping in GROUPINGS:
        for n in dict.fromkeys((1, seeds // 2)):
            sets = [Gains(tuple(passes[i : i + n])) for i in range(0, seeds - n + 1, n)]
            elected = [[best_places(gains, group, grouping) for group in groups] for gains in sets]
            layers, whole = [], []
            for i in range(len(sets)):
                for j in range(i):
                    for one, other in zip(elected[i], elected[j], strict=True):
                        same = [a == b for f in one for a, b in zip(one[f], other[f], strict=True)]
                        layers.append(np.mean(same))
                        whole.append(all(same))
            yield {
                "space": name,
                "grouping": grouping,
                "groups": n_groups(space, grouping),
                "averaged": n,
                "gains": agreement(sets),
                "plain gains": float(np.mean(plain)),
                "same layers": float(np.mean(layers)),
                "same whole": float(np.mean(whole)),
            }


if __name__ == "__main__":
    main()
