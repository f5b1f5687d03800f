"""Best found against evaluations with intervals over seeds: the numbers first, then the picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lpzero.search.metrics import best_after, mean_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = dict[str, Any]


def curve_rows(results: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[Row]:
    """Mean and interval of the best target of each arm after each number of evaluations."""
    rows = []
    for arm, runs in results.items():
        n = max(run["evaluations"] for run in runs)
        found = np.array([best_after(run["trace"], n) for run in runs])  # (seeds, n)
        for index, column in enumerate(found.T):
            low, high = mean_interval(list(column))
            rows.append(
                {
                    "arm": arm,
                    "evaluations": index + 1,
                    "mean": float(column.mean()),
                    "low": low,
                    "high": high,
                }
            )
    return rows


def draw(rows: Sequence[Row], target: str, threshold: float | None) -> Figure:
    """A line per arm and its interval; an arm of one evaluation is a point."""
    from lpzero.report.figures import style

    with style.look():
        figure = style.new(7.0, 4.5)
        axes = figure.subplots()
        for index, arm in enumerate(dict.fromkeys(row["arm"] for row in rows)):
            of_arm = [row for row in rows if row["arm"] == arm]
            x, mean, low, high = (
                [row[key] for row in of_arm] for key in ("evaluations", "mean", "low", "high")
            )
            colour = style.COLOURS[index % len(style.COLOURS)]
            dashes = style.DASHES[index % len(style.DASHES)]
            marker = style.MARKERS[index % len(style.MARKERS)] if len(x) == 1 else None
            axes.plot(x, mean, color=colour, linestyle=dashes, marker=marker, label=arm)
            axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
        if threshold is not None:
            axes.axhline(threshold, color=style.GREY, linewidth=0.8, label="start of the best 1%")
        axes.set_xlabel("evaluations")
        axes.set_ylabel(f"best {target}")
        axes.set_title("mean over seeds and its 95% interval")
        axes.legend(loc="lower right", fontsize=8)
    return figure
