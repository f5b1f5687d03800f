"""The best rho found with each pair of statistics under each operation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.figure import Figure

from lpzero.arrays import FloatArray
from lpzero.report.figures import plotly_spec as plotly
from lpzero.report.figures import style
from lpzero.report.figures.drawn import SEARCHED, Drawn, FigureKind, Material
from lpzero.runs.formula_run import ONE_SIDED, PairRho
from primitives.registry import BINARIES
from primitives.statistics import STATISTICS


@dataclass(frozen=True, eq=False)
class Best:
    """Best absolute rho (operations, statistics, statistics), symmetric, NaN where none was tried.

    One-sided formulas lie on the diagonal.
    """

    operations: tuple[str, ...]
    statistics: tuple[str, ...]
    rho: FloatArray


class _Table:
    """Collects the largest value of each cell."""

    def __init__(self) -> None:
        self.operations = (*BINARIES, ONE_SIDED)
        self.statistics = tuple(STATISTICS)
        n = len(self.statistics)
        self.rho = np.full((len(self.operations), n, n), np.nan)

    def add(self, pair: PairRho) -> None:
        i, j = self.statistics.index(pair.one), self.statistics.index(pair.other)
        plane = self.rho[self.operations.index(pair.operation)]
        plane[i, j] = plane[j, i] = np.fmax(plane[i, j], abs(pair.rho))

    def done(self) -> Best:
        tried = ~np.isnan(self.rho).all(axis=(1, 2))
        names = tuple(name for name, there in zip(self.operations, tried, strict=True) if there)
        return Best(names, self.statistics, self.rho[tried])


def best(pairs: Iterable[PairRho]) -> Best:
    """The best of each pair and operation."""
    table = _Table()
    for pair in pairs:
        table.add(pair)
    return table.done()


def draw(data: Best) -> Figure:
    """A panel per operation, each with the lower triangle of statistic against statistic."""
    with style.look():
        n = max(1, len(data.operations))
        figure = style.new(2.3 * n + 1.0, 2.9)
        panels = figure.subplots(1, n, squeeze=False, sharey=True)[0]
        low, high = scale(data) if data.operations else (0.0, 1.0)
        image = None
        for axes, operation, plane in zip(panels, data.operations, data.rho, strict=False):
            shown = np.where(np.tri(len(plane), dtype=bool), plane, np.nan)
            image = axes.imshow(shown, cmap=style.MAP, vmin=low, vmax=high)
            for (row, column), value in np.ndenumerate(shown):
                if not np.isnan(value):
                    is_dark = (value - low) / (high - low) < 0.55
                    axes.text(
                        column,
                        row,
                        f"{value:.2f}"[1:] if value < 1 else "1",
                        ha="center",
                        va="center",
                        fontsize=7,
                        color="white" if is_dark else "black",
                    )
            axes.set_title(operation)
            ticks = range(len(data.statistics))
            axes.set_xticks(ticks, data.statistics)
            axes.set_yticks(ticks, data.statistics)
            axes.tick_params(length=0)
            axes.spines[:].set_visible(False)
        panels[0].set_ylabel("statistic")
        figure.supxlabel("statistic", fontsize=9)
        if image is not None:
            figure.colorbar(image, ax=list(panels), label="best |ρ| on train", shrink=0.9)
    return figure


def spec(data: Best) -> plotly.Spec:
    """The same for a browser: a panel per operation, at most two beside each other."""
    low, high = scale(data)
    columns = min(2, len(data.operations))
    rows = -(-len(data.operations) // columns)
    traces, layout = [], {}
    for place, (operation, plane) in enumerate(zip(data.operations, data.rho, strict=True)):
        number = "" if place == 0 else str(place + 1)
        shown = np.where(np.tri(len(plane), dtype=bool), plane, np.nan)
        traces.append(
            {
                "type": "heatmap",
                "x": data.statistics,
                "y": data.statistics,
                "z": shown,
                "text": [["" if np.isnan(v) else f"{v:.3f}" for v in line] for line in shown],
                "texttemplate": "%{text}",
                "textfont": {"size": 11, "color": "@ink"},
                "xaxis": f"x{number}",
                "yaxis": f"y{number}",
                "coloraxis": "coloraxis",
                "hoverongaps": False,
                "hovertemplate": f"{operation} of %{{y}} and %{{x}}: ρ %{{z:.4f}}<extra></extra>",
            }
        )
        axis: dict[str, object] = {"showgrid": False, "zeroline": False, "fixedrange": True}
        layout[f"xaxis{number}"] = plotly.axis(
            f"<b>{operation}</b>", anchor=f"y{number}", ticks="", **axis
        )
        layout[f"yaxis{number}"] = plotly.axis(
            "", autorange="reversed", anchor=f"x{number}", ticks="", **axis
        )
    grid = {"rows": rows, "columns": columns, "pattern": "independent", "xgap": 0.16, "ygap": 0.3}
    bar = {"title": {"text": "best |ρ|"}, "thickness": 12, "outlinewidth": 0}
    return plotly.spec(
        traces,
        height=40 + 260 * rows,
        grid=grid,
        coloraxis={"colorscale": "@scale", "cmin": low, "cmax": high, "colorbar": bar},
        **layout,
    )


def scale(data: Best) -> tuple[float, float]:
    """The ends of the colours: the values that occur, so that differences can be seen.

    The lowest tenth of the values shares the first colour, or one bad pair would hide the rest.
    """
    values = data.rho[~np.isnan(data.rho)]
    low, high = float(np.quantile(values, 0.1)), float(values.max())
    return (low, high) if high - low > 1e-6 else (high - 0.01, high)


def _figures(material: Material) -> Iterator[Drawn]:
    run, data = material.run, best(material.run.pairs())
    if not data.operations:
        return
    planes = zip(data.operations, data.rho, strict=True)
    shown = [f"{operation} {np.nanmax(plane):.3f}" for operation, plane in planes]
    lowest = ", lowest over the tables" if len(run.tables) > 1 else ""
    yield Drawn(
        "pairs",
        "The best |ρ| that was found with each pair of statistics under each operation, on"
        f" {run.fitness_rows}{lowest}: in sample, and only over the formulas that were tried."
        " One-sided formulas are on the diagonal.",
        f"Heat maps; best per operation: {', '.join(shown)}.",
        spec(data),
        partial(draw, data),
    )


FIGURE = FigureKind(50, SEARCHED, _figures)
