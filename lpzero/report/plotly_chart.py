"""A chart for a browser: a Plotly specification of plain JSON values, in colours that have roles.

A specification is `{"data": [...], "layout": {...}}`. It names colours by role ("@1" to "@7",
"@ink", "@soft", "@line", "@paper", "@accent"): the page's script puts in the palette of the light
or the dark page, and `coloured` does so in Python. Plotly reads simple HTML in every text, and
names come from files, so each of them goes through `escaped`, `shown` or `wrapped`.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from importlib.resources import files
from textwrap import wrap
from typing import Any

import numpy as np

from lpzero.report.chart import GREY, Axis, Cells, Chart, Level, Line, Panel, Points, shortened

Spec = Mapping[str, Any]
Trace = dict[str, Any]

# Okabe and Ito's colours, those of the printed figures; lighter ones where the page is dark.
PALETTES: Mapping[str, Mapping[str, Any]] = {
    "light": {
        "1": "#0072B2", "2": "#C04F00", "3": "#007F5C", "4": "#B04F86",
        "5": "#9A6700", "6": "#2A87B8", "7": "#1b1b1b",
        "ink": "#1b1b1b", "soft": "#555555", "line": "#d4d7db", "paper": "#ffffff",
        "accent": "#0b5cad",
        "scale": [[0.0, "#f6f8fa"], [0.5, "#cadff2"], [1.0, "#79aede"]],
    },
    "dark": {
        "1": "#56B4E9", "2": "#FF9147", "3": "#3CC9A0", "4": "#E5A3CB",
        "5": "#F0C04A", "6": "#9AD6F7", "7": "#e8e8e8",
        "ink": "#e8e8e8", "soft": "#b0b0b0", "line": "#3b4046", "paper": "#17191c",
        "accent": "#8cc2ff",
        "scale": [[0.0, "#1e2227"], [0.5, "#234562"], [1.0, "#2c6699"]],
    },
}  # fmt: skip
SYMBOLS = ("circle", "triangle-up", "square", "diamond", "triangle-down", "cross", "x")
DASHES = ("solid", "dash", "dashdot", "dot", "longdash", "longdashdot", "dash")
_UNPRINTABLE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]+")
_ROW, _PANEL, _CELL = 22, 400, 60  # heights in pixels
_REFERENCE = {"color": "@soft", "width": 1, "dash": "dash"}


def spec(chart: Chart) -> dict[str, Any]:
    """The chart as a specification; its width is that of the page."""
    traces: list[Trace] = []
    layout = _layout(chart)
    named: set[str] = set()
    for place, panel in enumerate(chart.panels):
        number = "" if place == 0 else str(place + 1)
        for series in panel.series:
            for trace in _traces(series, panel):
                is_first = "name" in trace and trace["name"] not in named
                named |= {trace.get("name", "")}
                traces.append(
                    {**trace, "xaxis": f"x{number}", "yaxis": f"y{number}", "showlegend": is_first}
                )
        layout["shapes"] += [_reference(level, number) for level in panel.levels]
        layout["annotations"] += [_note(level, number) for level in panel.levels if level.text]
        x, y = _axes(panel, number)
        if place % chart.columns and panel.y.title == chart.panels[place - 1].y.title:
            y["title"] = {"text": ""}  # once for a row of panels
        layout[f"xaxis{number}"], layout[f"yaxis{number}"] = x, y
    figure: dict[str, Any] = plain({"data": traces, "layout": layout})
    return figure


def _layout(chart: Chart) -> dict[str, Any]:
    layout: dict[str, Any] = {
        "height": _height(chart),
        "margin": {"l": 56, "r": 16, "t": 32 if chart.names else 12, "b": 48},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": "@ink", "size": 13, "family": "system-ui, sans-serif"},
        "hoverlabel": {
            "bgcolor": "@paper", "bordercolor": "@soft", "align": "left",
            "font": {"color": "@ink", "size": 13, "family": "ui-monospace, monospace"},
        },
        "hovermode": "closest",
        "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.0, "x": 0.0},
        "showlegend": bool(chart.names),
        "shapes": [],
        "annotations": [],
    }  # fmt: skip
    if len(chart.panels) > 1:
        layout["grid"] = {
            "rows": chart.rows, "columns": min(chart.columns, len(chart.panels)),
            "pattern": "independent", "xgap": 0.16, "ygap": 0.3,
        }  # fmt: skip
    cells = chart.cells
    if cells:
        (low, high), bar = cells[0].limits, {"thickness": 12, "outlinewidth": 0}
        layout["coloraxis"] = {
            "colorscale": "@scale", "cmin": low, "cmax": high,
            "colorbar": {"title": {"text": cells[0].measure}, **bar},
        }  # fmt: skip
    return layout


def _height(chart: Chart) -> int:
    panel = chart.panels[0]
    if chart.cells:
        return 40 + 260 * chart.rows if chart.rows > 1 else 150 + _CELL * len(panel.y.names)
    if panel.y.names:
        return 115 + _ROW * len(panel.y.names)
    return 340 if len(chart.panels) > 1 and chart.rows == 1 else _PANEL * chart.rows


def _traces(series: Points | Line | Cells, panel: Panel) -> list[Trace]:
    if isinstance(series, Points):
        return [_points(series)]
    return _lines(series, panel) if isinstance(series, Line) else [_cells(series, panel)]


def _points(series: Points) -> Trace:
    symbol = SYMBOLS[series.colour % len(SYMBOLS)]
    trace: Trace = {
        "type": "scatter",
        "mode": "markers",
        "x": series.x,
        "y": series.y,
        "marker": {
            "color": _colour(series.colour),
            "symbol": f"{symbol}-open" if series.is_open else symbol,
            "size": 14 if series.is_large else 7 if series.is_open else 9,
            "opacity": 0.85,
        },
        "customdata": [wrapped(text) for text in series.hover],
        "hovertemplate": "%{customdata}<extra></extra>",
        **_named(series.name),
    }
    if series.intervals is not None:
        ends = list(zip(series.intervals, series.x, strict=True))
        trace["error_x"] = {
            "type": "data",
            "symmetric": False,
            "array": [high - value for (_, high), value in ends],
            "arrayminus": [value - low for (low, _), value in ends],
            "thickness": 1.5,
            "width": 0,
        }
    return trace


def _lines(series: Line, panel: Panel) -> list[Trace]:
    """The band, if there is one, and the line."""
    shape = "hv" if series.is_stepped else "linear"
    colour = _colour(series.colour)
    traces: list[Trace] = []
    if series.band is not None:
        edge = {
            "type": "scatter", "mode": "lines", "x": series.x, "hoverinfo": "skip",
            "line": {"width": 0.5, "color": colour, "shape": shape},
        }  # fmt: skip
        low, high = series.band
        traces += [{**edge, "y": low}, {**edge, "y": high, "fill": "tonexty"}]
    said: Trace = {"hoverinfo": "skip"}
    if series.hover is not None:
        said = {
            "meta": "<br>".join([wrapped(series.hover), shown(panel.y.title)]).removeprefix("<br>"),
            "hovertemplate": "%{meta} %{y:.6~g} after %{x:,}<extra></extra>",
        }
    dash = DASHES[series.colour % len(DASHES)] if series.colour != GREY else "solid"
    line: Trace = {
        "type": "scatter",
        "mode": "lines" if len(series.x) > 1 else "markers",
        "x": series.x,
        "y": series.y,
        "line": {
            "color": colour, "width": 1 if series.colour == GREY else 2.5, "shape": shape,
            "dash": dash,
        },
        "marker": {"color": colour, "size": 10},
        "opacity": 0.5 if series.is_thin else 1,
        **said,
        **_named(series.name),
    }  # fmt: skip
    return [*traces, {**line, "legendgroup": line["name"]} if "name" in line else line]


def _cells(series: Cells, panel: Panel) -> Trace:
    values = series.values
    return {
        "type": "heatmap",
        "x": list(range(len(panel.x.names))),
        "y": list(range(len(panel.y.names))),
        "z": values,
        "text": [["" if np.isnan(value) else f"{value:.3f}" for value in row] for row in values],
        "texttemplate": "%{text}",
        "textfont": {"size": 11, "color": "@ink"},
        "customdata": [[wrapped(text) for text in row] for row in series.hover],
        "coloraxis": "coloraxis",
        "hoverongaps": False,
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _axes(panel: Panel, number: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The two axes; the title of one of several panels stands with that of its horizontal axis."""
    has_cells = any(isinstance(series, Cells) for series in panel.series)
    head, *below = panel.title.split("\n")
    titles = [f"<b>{escaped(head)}</b>"] if head else []
    titles += [shown(line) for line in (*below, panel.x.title) if line]
    x = _axis(panel.x, "<br>".join(titles), has_cells)
    y = _axis(panel.y, shown(panel.y.title), has_cells)
    if panel.y.names:
        y |= {"range": [len(panel.y.names) - 0.5, -0.5], "showgrid": False, "ticksuffix": " "}
    if panel.is_square:
        x |= {"constrain": "domain"}
        y |= {"constrain": "domain", "scaleanchor": f"x{number}"}
    return {**x, "anchor": f"y{number}"}, {**y, "anchor": f"x{number}"}


def _axis(axis: Axis, title: str, has_cells: bool) -> dict[str, Any]:
    options: dict[str, Any] = {
        "gridcolor": "@line", "linecolor": "@soft", "zerolinecolor": "@line", "automargin": True,
        "title": {"text": title, "standoff": 8},
    }  # fmt: skip
    if axis.names:
        options |= {
            "tickmode": "array", "tickvals": list(range(len(axis.names))),
            "ticktext": [shown(name, 26) for name in axis.names], "zeroline": False,
        }  # fmt: skip
    if has_cells:
        options |= {"showgrid": False, "zeroline": False, "fixedrange": True, "ticks": ""}
    if axis.is_logarithmic:
        options["type"] = "log"
    if axis.limits is not None:
        options["range"] = list(axis.limits[::-1] if axis.is_reversed else axis.limits)
    elif axis.is_reversed:
        options["autorange"] = "reversed"
    return options


def _reference(level: Level, number: str) -> dict[str, Any]:
    across, along = ("y", "x") if level.is_vertical else ("x", "y")
    return {
        "type": "line", f"{across}ref": f"{across}{number} domain", f"{across}0": 0,
        f"{across}1": 1, f"{along}ref": f"{along}{number}", f"{along}0": level.at,
        f"{along}1": level.at, "line": _REFERENCE, "layer": "below",
    }  # fmt: skip


def _note(level: Level, number: str) -> dict[str, Any]:
    """What a reference line means, above its right end."""
    return {
        "text": shown(level.text, 60), "xref": f"x{number} domain", "x": 1.0, "xanchor": "right",
        "yref": f"y{number}", "y": level.at, "yanchor": "bottom", "showarrow": False,
        "font": {"color": "@soft", "size": 12},
    }  # fmt: skip


def _named(name: str) -> dict[str, str]:
    return {"name": shown(name, 60)} if name else {}


def _colour(place: int) -> str:
    return "@soft" if place == GREY else f"@{place % 7 + 1}"


def shown(text: object, most: int = 80) -> str:
    """A text of a file for a figure: one line of at most that many letters, never markup."""
    return escaped(shortened(_printable(text), most))


def wrapped(text: object, width: int = 56, most: int = 6) -> str:
    """A text in lines of at most `width` letters; each line that it has may take `most` lines."""
    lines: list[str] = []
    for paragraph in _printable(text).split("\n"):
        parts = wrap(paragraph, width, break_long_words=True)
        lines += parts[:most] + (["…"] if len(parts) > most else [])
    return "<br>".join(escaped(line) for line in lines)


def _printable(text: object) -> str:
    return _UNPRINTABLE.sub(" ", str(text))


def escaped(line: str) -> str:
    """The line as Plotly shows it; it knows few entities, and dollars would start mathematics."""
    return escape(line, quote=False).replace("$", "&#36;")


def coloured(figure: Spec, palette: str = "light") -> dict[str, Any]:
    """The specification with the palette's colours in place of the roles."""
    result: dict[str, Any] = _coloured(figure, PALETTES[palette])
    return result


def _coloured(value: Any, palette: Mapping[str, Any]) -> Any:
    if isinstance(value, str):
        return palette.get(value[1:], value) if value.startswith("@") else value
    if isinstance(value, Mapping):
        return {key: _coloured(entry, palette) for key, entry in value.items()}
    return [_coloured(entry, palette) for entry in value] if isinstance(value, list) else value


def plain(value: Any) -> Any:
    """JSON values: arrays as lists, numbers that JSON cannot hold as None."""
    if isinstance(value, Mapping):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(entry) for entry in value]
    if isinstance(value, (np.floating, float)):
        return float(value) if np.isfinite(value) else None
    return int(value) if isinstance(value, np.integer) else value


@dataclass(frozen=True, slots=True)
class Bundle:
    """Plotly's script as base64 of gzip, and its digest for a content security policy."""

    packed: str
    digest: str


@lru_cache(maxsize=1)
def bundle() -> Bundle:
    """The installed version's bundle: 4.8 MB as text, 2 MB packed."""
    code = script()
    packed = gzip.compress(code.encode(), 9, mtime=0)  # without a date: equal bytes
    return Bundle(base64.b64encode(packed).decode(), digest(code))


def script() -> str:
    """The text of plotly.min.js."""
    return files("plotly").joinpath("package_data/plotly.min.js").read_text(encoding="utf-8")


def digest(text: str) -> str:
    """The SHA-256 of a text, as a content security policy has it."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
