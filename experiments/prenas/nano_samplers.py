"""Figures 4, 5 and 6 of PreNAS at nano scale: what the preferred networks are worth, per sampler.

    python -m experiments.prenas.nano_trainings --out runs/one_shot
    python -m experiments.prenas.nano_samplers --out runs/one_shot

Figure 4 compares preferred (balanced) with redundant training, Figure 5 the four samplers, at equal
steps. Figure 6 is the distribution of errors in the redundant supernet: of drawn architectures
and of the preferred ones, in which no sampler favours either. Test fonts are held out.
"""

from __future__ import annotations

import random
from pathlib import Path

import click
import numpy as np

from experiments.measured import prints_measured
from experiments.prenas.nano_trainings import SPACE, folder_of
from experiments.student import interval
from lpzero.cli.options import format_option
from lpzero.cli.output import print_rows
from lpzero.supernet.selection import SAMPLERS, usual_preferred
from lpzero.supernet.trained import open_supernet

import spaces  # isort: skip

N_DRAWN = 40


@click.command()
@click.option("--out", type=click.Path(path_type=Path), required=True)
@click.option("--seeds", default=3, show_default=True)
@format_option
@prints_measured
def main(out: Path, seeds: int, form: str) -> None:
    """Print the accuracies of the preferred networks on held-out fonts, and the differences."""
    space = spaces.get(SPACE)
    preferred = usual_preferred(space)
    found = {
        name: np.array(
            [_accuracies(folder_of(out, name, seed), preferred) for seed in range(seeds)]
        )
        for name in SAMPLERS
    }  # (seeds, networks)
    rows = []
    for name, values in found.items():
        by_seed = values.mean(1)
        difference = by_seed - found["redundant"].mean(1)
        rows.append(
            {
                "sampler": name,
                "mean accuracy": f"{by_seed.mean():.3f}",
                "smallest network": f"{values[:, 0].mean():.3f}",
                "best network": f"{values.max(1).mean():.3f}",
                "minus redundant": interval(difference) if name != "redundant" else "-",
            }
        )
    print_rows(rows, form, f"{len(preferred)} preferred networks, {seeds} seeds, test fonts")
    rng = random.Random(1)
    drawn = [space.sample(rng) for _ in range(N_DRAWN)]
    errors = []
    for seed in range(seeds):
        others = 1 - np.array(_accuracies(folder_of(out, "redundant", seed), drawn))
        chosen = 1 - found["redundant"][seed]
        errors.append(
            [*np.quantile(others, (0.1, 0.5, 0.9)), *np.quantile(chosen, (0.1, 0.5, 0.9))]
        )
    means = np.mean(errors, axis=0)
    rows = [
        {"networks": f"{N_DRAWN} drawn", "10%": means[0], "median": means[1], "90%": means[2]},
        {"networks": "preferred", "10%": means[3], "median": means[4], "90%": means[5]},
    ]
    print_rows(rows, form, "errors in the redundant supernet (quantiles, mean of seeds)")


def _accuracies(folder: Path, archs: list[object]) -> list[float]:
    trained = open_supernet(folder)
    return [trained.measure(arch, "test").value for arch in archs]


if __name__ == "__main__":
    main()
