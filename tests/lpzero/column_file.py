"""A made-up CSV file of columns whose target is a known product of three of them, and noise."""

from __future__ import annotations

from pathlib import Path

import numpy as np

N = 90
TARGET = "accuracy"


def write_csv(folder: Path, name: str = "metrics.csv") -> Path:
    """The path of the file; a column changes sign, one is below zero, one has a reserved name."""
    rng = np.random.default_rng(11)
    size, params, cost = (rng.uniform(1, 20, N) for _ in range(3))
    change, noise = rng.normal(size=N), rng.normal(size=N)
    quality = np.log(size) + 0.75 * np.log(params) - 0.5 * np.log(cost) + 0.15 * noise
    lines = ["arch,Model Size,params,cost,change,accuracy"]
    for row in range(N):
        numbers = (size[row], params[row], -cost[row], change[row], quality[row])
        lines.append(",".join([f"net{row}", *(f"{number:.6f}" for number in numbers)]))
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
