"""Best found against evaluations with intervals over seeds: the numbers first, then the picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lpzero.errors import InputError
from lpzero.search.metrics import best_after, mean_interval

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


def draw(rows: Sequence[Row], target: str, threshold: float | None, stem: Path) -> None:
    """The curves as PDF and PNG; an arm of one evaluation is a point."""
    try:
        import matplotlib
    except ImportError:
        raise InputError("drawing needs matplotlib: pip install matplotlib") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(7, 4.5))
    for arm in dict.fromkeys(row["arm"] for row in rows):
        of_arm = [row for row in rows if row["arm"] == arm]
        x, mean, low, high = (
            [row[key] for row in of_arm] for key in ("evaluations", "mean", "low", "high")
        )
        (line,) = axis.plot(x, mean, label=arm, marker="o" if len(x) == 1 else None)
        axis.fill_between(x, low, high, alpha=0.15, color=line.get_color())
    if threshold is not None:
        axis.axhline(threshold, color="grey", linestyle=":", label="best 1%")
    axis.set(xlabel="evaluations", ylabel=f"best {target}")
    axis.set_title("mean over seeds and its 95% interval", fontsize="small")
    axis.legend(fontsize="small")
    figure.tight_layout()
    figure.savefig(stem.with_suffix(".pdf"), metadata={"CreationDate": None})
    figure.savefig(stem.with_suffix(".png"), dpi=150)
    pyplot.close(figure)
