"""Best fitness so far against evaluations: the numbers, then the figure."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments.lpzero.arms import BUDGET, Arm
from lpzero.report import drawn_chart, style
from lpzero.report.chart import Chart
from lpzero.report.figures import convergence
from lpzero.runs import layout

GRID = np.arange(80, BUDGET + 1, 10)
PANELS = {
    "6": "search and pruning (Figure 6)",
    "7": "population (Figure 7)",
    "13": "unaries (Figure 13)",
}


def history(run: Path) -> list[dict[str, Any]]:
    """A row per generation."""
    with open(run / layout.HISTORY, newline="") as file:
        return list(csv.DictReader(file))


def draw(
    arms: Sequence[Arm], root: Path, n_seeds: int, optimum: float, data: Path, picture: Path
) -> None:
    """Write mean, lowest and highest over the seeds to `data`, and draw them."""
    from experiments.lpzero.evolution import place

    found = convergence.convergence(
        {arm.name: [history(place(root, arm, seed)) for seed in range(n_seeds)] for arm in arms},
        {"optimum of chains of two": optimum},
        GRID,
        measured="best |ρ| on the 50 architectures",
    )
    with open(data, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["arm", "evaluations", "mean", "lowest", "highest"])
        for arm in found.arms:
            for n, column in zip(GRID, arm.fitness.T, strict=True):
                numbers = [column.mean(), column.min(), column.max()]
                writer.writerow([arm.name, n, *(f"{number:.5f}" for number in numbers)])
    panels = []
    for number, title in PANELS.items():
        names = {arm.name for arm in arms if number in arm.figure.split()}
        shown = tuple(arm for arm in found.arms if arm.name in names)
        panels.append(convergence.panel(replace(found, arms=shown), title))
    chart = Chart(name="curves", caption="", words="", panels=panels, columns=len(panels))
    style.save(drawn_chart.draw(chart), picture)
