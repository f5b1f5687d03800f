"""Rank by score against rank by target (Figures 5 and 8 of LPZero): 1 is the best."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from lpzero.arrays import FloatArray
from lpzero.judgement.correlation import kendall_many
from lpzero.judgement.ranks import rank, rank_targets
from lpzero.judgement.table import SPLIT_PARTS
from lpzero.report.figures import plotly_spec as plotly
from lpzero.report.figures import style
from lpzero.report.figures.drawn import HOLDS, Drawn, FigureKind, Material, file_name
from lpzero.report.figures.scatter import Scores, described, marker, of_run


def ranks(data: Scores, part: str | None = None) -> tuple[FloatArray, FloatArray]:
    """Ranks by score and by target (n,) among all rows or those of a part; the best has rank 1."""
    rows = np.arange(len(data.scores)) if part is None else data.rows(part)
    n = len(rows)
    by_score, by_target = rank(data.scores[rows]), rank_targets(data.targets[rows])
    return n + 1 - by_score, n + 1 - by_target


def draw(data: Scores) -> Figure:
    """One panel per part, each ranked on its own; a perfect proxy stays on the diagonal."""
    with style.look():
        names: list[str | None] = [part for part in SPLIT_PARTS if len(data.rows(part)) > 1] or [
            None
        ]
        figure = style.new(2.6 * len(names) + 0.6, 3.5)
        panels = figure.subplots(1, len(names), squeeze=False)[0]
        for index, (axes, part) in enumerate(zip(panels, names, strict=True)):
            by_score, by_target = ranks(data, part)
            n = len(by_score)
            axes.plot([1, n], [1, n], color=style.GREY, linewidth=0.8)
            axes.plot(
                by_target,
                by_score,
                linestyle="none",
                marker=style.MARKERS[index],
                markersize=3.5,
                color=style.COLOURS[index],
                alpha=0.8,
            )
            tau = float(kendall_many(-by_score[np.newaxis], -by_target).values[0])
            rho = _rho(by_score, by_target)
            axes.set_title(f"{part or 'all'} (n = {n})\nρ = {rho:.3f}, τ = {tau:.3f}", fontsize=9)
            axes.set_xlabel("rank by target (1 is best)")
            axes.set_box_aspect(1)
            axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
            axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
            axes.set_xlim(0, n + 1)
            axes.set_ylim(0, n + 1)
        panels[0].set_ylabel("rank by score (1 is best)")
        wide = 30 * len(names)
        figure.suptitle(style.short(f"{data.table}: {data.proxy}", wide), fontsize=10)
    return figure


def spec(data: Scores) -> plotly.Spec:
    """The same for a browser: the test rows alone, if there are any, which were unseen."""
    part = "test" if len(data.rows("test")) > 1 else None
    by_score, by_target = ranks(data, part)
    rows = np.arange(len(data.scores)) if part is None else data.rows(part)
    n = len(rows)
    place = data.names.index(part) if part else 0
    traces: list[dict[str, object]] = [
        {
            "type": "scatter",
            "mode": "lines",
            "x": [1, n],
            "y": [1, n],
            "line": {"color": "@soft", "width": 1},
            "hoverinfo": "skip",
        },
        {
            "type": "scatter",
            "mode": "markers",
            "x": by_target,
            "y": by_score,
            "marker": marker(place, part or "", [part or ""]),
            "customdata": described(data, rows),
            "hovertemplate": "%{customdata}<br>rank %{y} by score, %{x} by target<extra></extra>",
        },
    ]
    turned = {"autorange": "reversed", "constrain": "domain"}
    return plotly.spec(
        traces,
        height=400,
        xaxis=plotly.axis(f"rank by target on {part or 'all'} rows, 1 is best", **turned),
        yaxis=plotly.axis("rank by score, 1 is best", scaleanchor="x", **turned),
    )


def _rho(first: FloatArray, second: FloatArray) -> float:
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return 0.0
    return float(np.corrcoef(first, second)[0, 1])


def _figures(material: Material) -> Iterator[Drawn]:
    for data in of_run(material.run):
        yield Drawn(
            f"ranks-{file_name(data.table)}",
            f"The winner's ranking of {data.table} against the true one, each part ranked on its"
            " own; a perfect proxy stays on the line.",
            f"Scatter plot of rank by score against rank by target; rho: {data.rhos}.",
            spec(data),
            partial(draw, data),
        )


FIGURE = FigureKind(20, HOLDS, _figures)
