"""A bar per proxy with its interval, and the line that parameters alone reach (Figure 1 of LPZero).

From the rows of `lpzero rank TABLE --format json`, or of anything that has been judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from matplotlib.figure import Figure

from lpzero.errors import InputError
from lpzero.judgement import counters
from lpzero.report.figures import plotly_spec as plotly
from lpzero.report.figures import style
from lpzero.report.figures.drawn import FOUND, Drawn, FigureKind, Material

_ROW = 0.24  # inches per bar


@dataclass(frozen=True, slots=True)
class Bar:
    """A proxy's rho with its 95% interval; counters are hatched."""

    proxy: str
    rho: float
    low: float
    high: float
    is_counter: bool


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars, best first."""

    title: str
    bars: tuple[Bar, ...]

    @property
    def parameters(self) -> float | None:
        """Rho of the number of parameters, if it is among the bars."""
        return next((bar.rho for bar in self.bars if bar.proxy == "parameters"), None)


def bars(rows: Iterable[Mapping[str, Any]], title: str = "") -> Bars:
    """The data of the figure from rows with `proxy`, `rho` and `rho_ci`."""
    sizes = {counters.BEST_COUNT, *counters.names()}
    try:
        found = [_bar(row, row["proxy"] in sizes) for row in rows]
    except (KeyError, TypeError, ValueError):
        raise InputError(
            "expected rows with 'proxy', 'rho' and 'rho_ci', as `lpzero rank --format json` gives"
        ) from None
    if not found:
        raise InputError("no proxy has a rho to draw")
    return Bars(title, tuple(sorted(found, key=lambda bar: (-bar.rho, bar.proxy))))


def draw(data: Bars) -> Figure:
    """Horizontal bars, the best on top."""
    with style.look():
        figure = style.new(6.2, 1.1 + _ROW * len(data.bars))
        axes = figure.subplots()
        for place, bar in enumerate(data.bars):
            axes.barh(
                place,
                bar.rho,
                height=0.7,
                color="#d9d9d9" if bar.is_counter else style.COLOURS[5],
                edgecolor="#404040",
                linewidth=0.5,
                hatch="////" if bar.is_counter else None,
            )
            axes.plot([bar.low, bar.high], [place, place], color="#202020", linewidth=1)
        if data.parameters is not None:
            axes.axvline(data.parameters, color=style.COLOURS[1], linestyle="--", linewidth=1.2)
            axes.annotate(
                f"parameters alone: {data.parameters:.3f}",
                (data.parameters, 1.0),
                (-3, 3),
                xycoords=("data", "axes fraction"),
                ha="right",
                fontsize=8,
                textcoords="offset points",
                color=style.COLOURS[1],
            )
        axes.axvline(0, color="#404040", linewidth=0.6)
        names = [style.short(bar.proxy, 44) for bar in data.bars]
        axes.set_yticks(range(len(names)), names, fontsize=8)
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(len(names) - 0.4, -0.6)
        low = min(0.0, *(bar.low for bar in data.bars)) if data.bars else 0.0
        axes.set_xlim(low, 1.0)
        axes.spines["left"].set_visible(False)
        figure.supxlabel(
            "Spearman's ρ with the target, 95% interval; hatched: counters", fontsize=9
        )
        if data.title:
            axes.set_title(style.short(data.title, 60), pad=14, loc="left")
    return figure


def spec(data: Bars) -> plotly.Spec:
    """The same for a browser: a dot with its interval per proxy."""
    traces = []
    for is_counter, name in ((False, "proxies"), (True, "counters")):
        shown = [bar for bar in data.bars if bar.is_counter is is_counter]
        traces.append(dots(name, shown, 1 if is_counter else 0))
    names = [plotly.text(bar.proxy, 28) for bar in data.bars]
    lines = [] if data.parameters is None else [plotly.vertical(data.parameters)]
    return plotly.spec(
        [trace for trace in traces if trace["x"]],
        height=110 + 22 * len(names),
        showlegend=True,
        shapes=[plotly.vertical(0.0, "@line"), *lines],
        xaxis=plotly.axis("ρ with the target, 95% interval"),
        yaxis=plotly.rows_axis(names),
    )


def dots(name: str, shown: Sequence[Bar], index: int) -> dict[str, Any]:
    """A trace of dots with intervals, a row per proxy."""
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": [bar.rho for bar in shown],
        "y": [plotly.text(bar.proxy, 28) for bar in shown],
        "error_x": plotly.intervals([(bar.low, bar.rho, bar.high) for bar in shown]),
        "marker": {"color": plotly.colour(index), "symbol": plotly.SYMBOLS[index], "size": 10},
        "customdata": [
            f"{plotly.lines(bar.proxy)}<br>ρ {bar.rho:.3f} [{bar.low:.3f}, {bar.high:.3f}]"
            for bar in shown
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _bar(row: Mapping[str, Any], is_counter: bool) -> Bar:
    low, high = row["rho_ci"]
    return Bar(str(row["proxy"]), float(row["rho"]), float(low), float(high), is_counter)


def _figures(material: Material) -> Iterator[Drawn]:
    if material.ranking is not None:
        data = bars(material.ranking, "all proxies, whole table")
        yield drawn("proxies", data, "Every proxy of the given ranking on the whole table.")


def drawn(name: str, data: Bars, caption: str) -> Drawn:
    """The figure with its description in words."""
    words = "; ".join(f"{bar.proxy} {bar.rho:.3f}" for bar in data.bars[:12])
    return Drawn(name, caption, f"Chart of rho: {words}.", spec(data), partial(draw, data))


FIGURE = FigureKind(30, FOUND, _figures)
