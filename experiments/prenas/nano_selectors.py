"""Ours: the engine's discovered formula as the selector instead of SNIP (PreNAS, equation 8).

    python -m experiments.prenas.nano_selectors --out runs/one_shot

Isomers are elected as in PreNAS; of each of the twelve bins of parameters the best by the frozen
formula is preferred. Supernets are trained on each selection (balanced, equal steps); of each, the
mean accuracy of its own preferred networks on test fonts, and the paired difference.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import click
import numpy as np

import spaces
from experiments.measured import prints_measured
from experiments.prenas.nano_trainings import SPACE, STEPS, folder_of
from experiments.student import interval
from lpzero import files
from lpzero.cli.options import format_option
from lpzero.cli.output import print_rows
from lpzero.proxies import Context, Measurements, find
from lpzero.supernet import Saliency, candidates
from lpzero.supernet.one_shot import SupernetRequest, SupernetSettings, train_supernet
from lpzero.supernet.selection import N_BINS, usual_preferred
from lpzero.supernet.trained import open_supernet

FORMULA = "engine-universal@0.2"


@click.command()
@click.option("--out", type=click.Path(path_type=Path), required=True)
@click.option("--seeds", default=3, show_default=True)
@format_option
@prints_measured
def main(out: Path, seeds: int, form: str) -> None:
    """Train supernets on the formula's selection and compare them with SNIP's."""
    space = spaces.get(SPACE)
    path = out / "formula.json"
    if not path.exists():
        archs = selected(FORMULA, out / "cache")
        files.write_json(path, [space.to_json(arch) for arch in archs])
    for seed in range(seeds):
        settings = SupernetSettings(sampler="balanced", steps=STEPS, seed=seed, every=500)
        train_supernet(SupernetRequest.of(SPACE, settings, path), folder_of(out, "formula", seed))
    found = {
        name: np.array([_mean_accuracy(folder_of(out, folder, seed)) for seed in range(seeds)])
        for name, folder in (("SNIP", "balanced"), (FORMULA, "formula"))
    }
    shared = set(usual_preferred(space)) & set(selected_archs(path))
    rows = [
        {
            "selector": name,
            "mean accuracy": values.mean(),
            "minus SNIP": "-" if name == "SNIP" else interval(values - found["SNIP"]),
        }
        for name, values in found.items()
    ]
    title = f"{len(shared)} networks are in both selections; {seeds} seeds, test fonts"
    print_rows(rows, form, title)


def selected(formula: str, cache: Path) -> list[Any]:
    """The best representative by the formula in each bin of parameters."""
    space = spaces.get(SPACE)
    archs = candidates(Saliency.of(space))
    scores = find(formula).score(space, archs, Measurements(Context(folder=cache)))
    sizes = np.array([space.parameters(arch) for arch in archs])
    edges = np.linspace(sizes.min(), sizes.max() + 1, N_BINS + 1)
    best = []
    for low, high in itertools.pairwise(edges):
        inside = np.flatnonzero((sizes >= low) & (sizes < high))
        best.append(archs[inside[np.argmax(scores[inside])]])
    return best


def selected_archs(path: Path) -> list[Any]:
    """The architectures in the file."""
    from lpzero.supernet.selection import read_preferred

    return read_preferred(path, spaces.get(SPACE))


def _mean_accuracy(folder: Path) -> float:
    trained = open_supernet(folder)
    return float(np.mean([trained.measure(a, "test").value for a in trained.request.preferred]))


if __name__ == "__main__":
    main()
