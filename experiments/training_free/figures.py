"""The figures' drawings, from data already computed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from lpzero.correlation import kendall_many
from lpzero.ranks import FloatArray

COLUMNS = 3


def panels(names: Sequence[str]) -> tuple[Figure, list[Any]]:
    """A figure with one panel per name."""
    rows = math.ceil(len(names) / COLUMNS)
    figure = Figure(figsize=(4 * COLUMNS, 3 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    axes = list(figure.subplots(rows, COLUMNS, squeeze=False).flat)
    for unused in axes[len(names) :]:
        unused.remove()
    for panel, name in zip(axes, names, strict=False):
        panel.set_title(name)
    return figure, axes[: len(names)]


def scatter(scores: Mapping[str, FloatArray], targets: FloatArray, path: Path) -> None:
    """Each metric (n,) against the targets (n,), with Kendall's tau."""
    figure, axes = panels(list(scores))
    for panel, (name, values) in zip(axes, scores.items(), strict=True):
        known = np.isfinite(values)
        tau = float(kendall_many(values[None, known], targets[known]).values[0])
        panel.plot(values[known], targets[known], ".", markersize=3)
        panel.set_title(f"{name}, tau {tau:.2f}")
    figure.savefig(path, dpi=110)


def strips(found: Mapping[str, Sequence[Sequence[float]]], path: Path) -> None:
    """Of each metric the values (runs, architectures), a strip per architecture."""
    figure, axes = panels(list(found))
    for panel, values in zip(axes, found.values(), strict=True):
        for run in values:
            panel.plot(range(1, len(run) + 1), run, "_", color="tab:blue")
        panel.set_xlabel("architecture, by score")
    figure.savefig(path, dpi=110)
