"""A chart as a matplotlib figure, for files and for readers without script."""

from __future__ import annotations

from textwrap import wrap
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from lpzero.report import style
from lpzero.report.chart import GREY, Axis, Cells, Chart, Line, Panel, Points, shortened

_WIDTH, _HEIGHT = 6.2, 3.6  # inches of a panel that stands alone
_ROW, _CELL = 0.23, 0.42  # inches of a row with a name, and of a cell
_LEGEND = 60  # letters in a line of a legend


def draw(chart: Chart) -> Figure:
    """The chart as a figure, its legend above it so that it hides nothing."""
    with style.look():
        columns = min(chart.columns, len(chart.panels))
        width, height = _size(chart.panels[0], columns)
        entries = list(map(_label, chart.names)) if len(chart.panels) == 1 else []
        legend_columns = _legend_columns(entries, width)
        above = 0.2 * -(-len(entries) // legend_columns) + (0.25 if chart.title else 0)
        figure = style.new(width * columns, height * chart.rows + above)
        grid = figure.subplots(chart.rows, columns, squeeze=False).ravel()
        for axes, panel in zip(grid, chart.panels, strict=False):
            _draw_panel(axes, panel)
        for axes in grid[len(chart.panels) :]:
            axes.set_visible(False)
        _label_shared_axes(chart, list(grid))
        _add_colour_scale(figure, chart, list(grid))
        if chart.title:
            title = shortened(chart.title, int(13 * width * columns))
            # A single panel has its title below the legend, which stands above the axes.
            if len(chart.panels) == 1 and not chart.panels[0].title:
                grid[0].set_title(title, fontsize=10)
            else:
                figure.suptitle(title, fontsize=10)
        if entries:
            figure.legend(loc="outside upper left", ncols=legend_columns, fontsize=8)
        elif chart.names:
            for axes in grid[: len(chart.panels)]:
                axes.legend(loc="lower right", fontsize=8)
    return figure


def _size(panel: Panel, columns: int) -> tuple[float, float]:
    """Inches of a panel."""
    if any(isinstance(series, Cells) for series in panel.series):
        longest = max(len(shortened(name, 24)) for name in panel.y.names)
        room = 0.07 * longest * (2 if columns == 1 else 1)
        cell = _CELL if longest < 6 else 1.2
        return cell * len(panel.x.names) + room + 0.8, _CELL * len(panel.y.names) + 1.0
    if panel.y.names:
        return _WIDTH, 0.9 + _ROW * len(panel.y.names)
    return (_WIDTH, _HEIGHT) if columns == 1 else (2.7, 3.2) if panel.is_square else (5.3, 5.0)


def _draw_panel(axes: Any, panel: Panel) -> None:
    labelled: set[str] = set()
    for series in panel.series:
        if isinstance(series, Cells):
            _draw_cells(axes, series)
            continue
        label = _label(series.name) if series.name not in labelled | {""} else None
        labelled.add(series.name)
        if isinstance(series, Points):
            _draw_points(axes, series, label)
        else:
            _draw_line(axes, series, label)
    for level in panel.levels:
        look = {"color": style.GREY, "linewidth": 0.8, "linestyle": (0, (2, 2)), "zorder": 0}
        (axes.axvline if level.is_vertical else axes.axhline)(level.at, **look)
        if level.text:
            axes.annotate(
                shortened(level.text, 60),
                (1.0, level.at),
                (0, 2),
                xycoords=("axes fraction", "data"),
                textcoords="offset points",
                ha="right",
                color=style.GREY,
                fontsize=8,
            )
    if panel.title:
        axes.set_title(panel.title, fontsize=9)
    if panel.is_square:
        axes.set_box_aspect(1)
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    _scale_axis(axes, panel.x, "x")
    _scale_axis(axes, panel.y, "y")


def _draw_points(axes: Any, series: Points, label: str | None) -> None:
    colour = style.COLOURS[series.colour % len(style.COLOURS)]
    for interval, y in zip(series.intervals or (), series.y, strict=False):
        axes.plot(interval, [y, y], color=colour, linewidth=1.2)
    axes.plot(
        series.x,
        series.y,
        linestyle="none",
        marker=style.MARKERS[series.colour % len(style.MARKERS)],
        markersize=8 if series.is_large else 4.5,
        color=colour,
        markerfacecolor="none" if series.is_open else colour,
        alpha=0.85,
        label=label,
    )


def _draw_line(axes: Any, series: Line, label: str | None) -> None:
    is_grey = series.colour == GREY
    colour = style.GREY if is_grey else style.COLOURS[series.colour % len(style.COLOURS)]
    axes.plot(
        series.x,
        series.y,
        color=colour,
        linestyle="-" if is_grey else style.DASHES[series.colour % len(style.DASHES)],
        linewidth=0.7 if series.is_thin else 0.8 if is_grey else 1.5,
        alpha=0.5 if series.is_thin else 1.0,
        marker=style.MARKERS[series.colour % len(style.MARKERS)] if len(series.x) == 1 else None,
        drawstyle="steps-post" if series.is_stepped else None,
        label=label,
    )
    if series.band is not None:
        step = "post" if series.is_stepped else None
        axes.fill_between(series.x, *series.band, color=colour, alpha=0.2, linewidth=0, step=step)


def _draw_cells(axes: Any, series: Cells) -> None:
    low, high = series.limits
    axes.imshow(series.values, cmap=style.MAP, vmin=low, vmax=high, aspect="auto")
    for (row, column), value in np.ndenumerate(series.values):
        if not np.isnan(value):
            is_dark = (value - low) / (high - low) < 0.55
            axes.text(
                column,
                row,
                f"{value:.3f}",
                ha="center",
                va="center",
                fontsize=7,
                color="white" if is_dark else "black",
            )
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _scale_axis(axes: Any, axis: Axis, side: str) -> None:
    """The labels, the limits and the direction of an axis."""
    if axis.names:
        names = [shortened(name, 40 if side == "y" else 24) for name in axis.names]
        axes.set(**{f"{side}ticks": range(len(names)), f"{side}ticklabels": names})
        axes.tick_params(axis=side, length=0, labelsize=8)
        axes.set(**{f"{side}lim": (-0.5, len(names) - 0.5)})
        if side == "y":
            axes.invert_yaxis()
    if axis.is_logarithmic:
        axes.set(**{f"{side}scale": "log"})
    if axis.limits is not None:
        axes.set(**{f"{side}lim": axis.limits})
    if axis.is_reversed:
        (axes.invert_xaxis if side == "x" else axes.invert_yaxis)()


def _label_shared_axes(chart: Chart, grid: list[Any]) -> None:
    """The titles of the axes: once along each side where all panels have the same."""
    columns = min(chart.columns, len(chart.panels))
    for place, (axes, panel) in enumerate(zip(grid, chart.panels, strict=False)):
        is_last = place + columns >= len(chart.panels)
        if is_last or panel.x != chart.panels[place + columns].x:
            axes.set_xlabel(shortened(panel.x.title, 80))
        if place % columns == 0 or panel.y.title != chart.panels[place - 1].y.title:
            axes.set_ylabel(shortened(panel.y.title, 60))


def _add_colour_scale(figure: Figure, chart: Chart, grid: list[Any]) -> None:
    if chart.cells:
        figure.colorbar(grid[0].images[0], ax=grid, label=chart.cells[0].measure, shrink=0.9)


def _label(name: str) -> str:
    return "\n".join(wrap(shortened(name, 3 * _LEGEND), _LEGEND))


def _legend_columns(entries: list[str], width: float) -> int:
    """As many columns as fit the width of the figure."""
    longest = max((len(line) for label in entries for line in label.split("\n")), default=0)
    return max(1, min(len(entries), int(14 * width / (longest + 8))))
