"""Best fitness so far against evaluations: the numbers first, then the picture."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.evolution.arms import BUDGET, Arm
from lpzero.campaign import folder

GRID = np.arange(80, BUDGET + 1, 10)
PANELS = {
    "6": "search and pruning (Figure 6)",
    "7": "population (Figure 7)",
    "13": "unaries (Figure 13)",
}


def best_so_far(run: Path) -> Any:
    """The best fitness after each number of evaluations of the grid (G,)."""
    with open(run / folder.HISTORY, newline="") as file:
        rows = list(csv.DictReader(file))
    evaluated = np.array([int(row["evaluated"]) for row in rows])
    fitness = np.array([float(row["fitness"]) for row in rows])
    # Before the first generation is complete nothing is known.
    at = np.searchsorted(evaluated, GRID, side="right") - 1
    return np.where(at >= 0, fitness[np.maximum(at, 0)], np.nan)


def draw(
    arms: Sequence[Arm], root: Path, n_seeds: int, optimum: float, data: Path, picture: Path
) -> None:
    """Write mean, lowest and highest over the seeds to `data`, and draw them."""
    from experiments.evolution.run import place

    found = {
        arm.name: np.array([best_so_far(place(root, arm, seed)) for seed in range(n_seeds)])
        for arm in arms
    }
    with open(data, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["arm", "evaluations", "mean", "lowest", "highest"])
        for name, values in found.items():
            for n, column in zip(GRID, values.T, strict=True):
                numbers = [column.mean(), column.min(), column.max()]
                writer.writerow([name, n, *(f"{number:.5f}" for number in numbers)])

    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(PANELS), figsize=(16, 5), sharey=True)
    for axis, (number, title) in zip(axes, PANELS.items(), strict=True):
        for arm in arms:
            if number in arm.figure.split():
                values = found[arm.name]
                (line,) = axis.plot(GRID, values.mean(axis=0), label=arm.name)
                axis.fill_between(GRID, values.min(axis=0), values.max(axis=0), alpha=0.15,
                                  color=line.get_color())  # fmt: skip
        axis.axhline(optimum, color="grey", linestyle=":", label="optimum of chains of two")
        axis.set(title=title, xlabel="formulas evaluated")
        axis.legend(fontsize="small", loc="lower right")
    axes[0].set_ylabel("best |rho| on the 50 architectures; mean and range of seeds")
    figure.tight_layout()
    figure.savefig(picture, dpi=110)
    pyplot.close(figure)
