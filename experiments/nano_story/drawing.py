"""The best target so far against the number of trainings, a line per arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from lpzero.ranks import FloatArray

MARKERS = "osD^v"


def best_so_far(results: Sequence[dict[str, Any]]) -> FloatArray:
    """The best target after each training, (searches, trainings)."""
    targets = [
        [entry["target"] for entry in result["trace"] if entry.get("target") is not None]
        for result in results
    ]
    return np.maximum.accumulate(np.array(targets), axis=1)


def draw(found: Mapping[str, Sequence[dict[str, Any]]], path: Path) -> None:
    """Means over searches with the range between the worst and the best of them."""
    figure = Figure(figsize=(6.5, 4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for marker, (name, results) in zip(MARKERS, found.items(), strict=False):
        lines = best_so_far(results)
        n = np.arange(1, lines.shape[1] + 1)
        (line,) = axes.plot(n, lines.mean(axis=0), marker=marker, markersize=4, label=name)
        axes.fill_between(
            n, lines.min(axis=0), lines.max(axis=0), color=line.get_color(), alpha=0.1
        )
    axes.set_xlabel("architectures trained")
    axes.set_ylabel("best target so far")
    axes.legend()
    figure.savefig(path, dpi=120)
