"""Best found against evaluations with intervals over seeds: the figure of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lpzero.report.figures import plotly_spec as plotly

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = dict[str, Any]


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


def spec(rows: Sequence[Row], target: str, threshold: float | None) -> plotly.Spec:
    """The same for a browser."""
    traces: list[Row] = []
    for index, arm in enumerate(dict.fromkeys(row["arm"] for row in rows)):
        found = [row for row in rows if row["arm"] == arm]
        x, colour = [row["evaluations"] for row in found], plotly.colour(index)
        band = {
            "type": "scatter", "mode": "lines", "x": x, "hoverinfo": "skip", "showlegend": False,
            "line": {"width": 0.5, "color": colour},
        }  # fmt: skip
        traces += [
            {**band, "y": [row["low"] for row in found]},
            {**band, "y": [row["high"] for row in found], "fill": "tonexty"},
            {
                "type": "scatter",
                "mode": "lines" if len(x) > 1 else "markers",
                "name": plotly.text(arm, 60),
                "x": x,
                "y": [row["mean"] for row in found],
                "line": {"color": colour, "dash": plotly.DASHES[index % len(plotly.DASHES)]},
                "marker": {"color": colour, "size": 10},
                "customdata": [plotly.text(arm, 60)] * len(x),
                "hovertemplate": "%{customdata}<br>%{y:.6~g} after %{x:,}<extra></extra>",
            },
        ]
    known = [] if threshold is None else [threshold]
    return plotly.spec(
        traces,
        height=420,
        showlegend=True,
        shapes=[plotly.horizontal(value) for value in known],
        annotations=[plotly.note("start of the best 1%", 1.0, value, "right") for value in known],
        xaxis=plotly.axis("evaluations"),
        yaxis=plotly.axis(f"best {plotly.text(target, 40)}"),
    )
