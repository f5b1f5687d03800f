"""Figures for a browser: Plotly specifications as plain JSON values, in colours that have roles.

A specification is `{"data": [...], "layout": {...}}`. It names colours by role ("@1" to "@7",
"@ink", "@soft", "@line", "@paper", "@accent"): the page's script puts in the palette of the light
or the dark page, and `coloured` does so in Python. Plotly reads simple HTML in every text, and
names come from files, so each of them goes through `text`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from textwrap import wrap
from typing import Any

import numpy as np

Spec = Mapping[str, Any]

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
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]+")
_AXIS = {"gridcolor": "@line", "linecolor": "@soft", "zerolinecolor": "@line", "automargin": True}


def text(value: object, most: int = 80) -> str:
    """A text of a file for a figure: one line of at most that many letters, never markup."""
    plain = _one_line(value)
    return _escaped(plain if len(plain) <= most else plain[: most - 1] + "…")


def lines(value: object, width: int = 60, most: int = 6) -> str:
    """A long text, such as a formula or an architecture, in lines of at most `width` letters."""
    found = wrap(_one_line(value), width, break_long_words=True)
    kept = found[:most] + (["…"] if len(found) > most else [])
    return "<br>".join(_escaped(line) for line in kept)


def _one_line(value: object) -> str:
    return " ".join(_UNPRINTABLE.sub(" ", str(value)).split())


def _escaped(line: str) -> str:
    """The line as Plotly shows it; it knows few entities, and dollars would start mathematics."""
    return escape(line, quote=False).replace("$", "&#36;")


def colour(index: int) -> str:
    """The role of the colour of the trace with that number, counted from 0."""
    return f"@{index % 7 + 1}"


def axis(title: str, **options: Any) -> dict[str, Any]:
    """An axis in the page's colours; `title` is text of ours or has gone through `text`."""
    return {**_AXIS, "title": {"text": title, "standoff": 8}, **options}


def rows_axis(names: Sequence[str]) -> dict[str, Any]:
    """An axis with a row per name, the first one on top; names have gone through `text`."""
    return axis(
        "",
        categoryorder="array",
        categoryarray=list(names)[::-1],
        range=[-0.7, len(names) - 0.3],
        showgrid=False,
        ticksuffix=" ",
    )


def intervals(found: Sequence[tuple[float, float, float]]) -> dict[str, Any]:
    """Error bars along x from (low, value, high)."""
    return {
        "type": "data",
        "symmetric": False,
        "array": [high - value for _, value, high in found],
        "arrayminus": [value - low for low, value, _ in found],
        "thickness": 1.5,
        "width": 0,
    }


def spec(data: Sequence[Mapping[str, Any]], height: int = 380, **layout: Any) -> dict[str, Any]:
    """The specification of a figure of that height in pixels; its width is that of the page."""
    common: dict[str, Any] = {
        "height": height,
        "margin": {"l": 56, "r": 16, "t": 32 if layout.get("showlegend") else 12, "b": 48},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": "@ink", "size": 13, "family": "system-ui, sans-serif"},
        "hoverlabel": {
            "bgcolor": "@paper", "bordercolor": "@soft", "align": "left",
            "font": {"color": "@ink", "size": 13, "family": "ui-monospace, monospace"},
        },
        "hovermode": "closest",
        "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.0, "x": 0.0},
        "showlegend": False,
    }  # fmt: skip
    found: dict[str, Any] = plain({"data": list(data), "layout": common | layout})
    return found


def vertical(at: float, colour_: str = "@soft") -> dict[str, Any]:
    """A line from the bottom to the top of the figure at a value of the horizontal axis."""
    line = {"color": colour_, "width": 1, "dash": "dash"}
    return {
        "type": "line", "xref": "x", "yref": "paper", "x0": at, "x1": at, "y0": 0, "y1": 1,
        "line": line, "layer": "below",
    }  # fmt: skip


def horizontal(at: float) -> dict[str, Any]:
    """A line across the figure at a value of the vertical axis."""
    line = {"color": "@soft", "width": 1, "dash": "dash"}
    return {
        "type": "line", "xref": "paper", "yref": "y", "x0": 0, "x1": 1, "y0": at, "y1": at,
        "line": line, "layer": "below",
    }  # fmt: skip


def note(shown: str, x: float, y: float, anchor: str) -> dict[str, Any]:
    """Words at a share of the width and a value of the vertical axis, above their line."""
    return {
        "text": shown, "xref": "paper", "yref": "y", "x": x, "y": y, "xanchor": anchor,
        "yanchor": "bottom", "showarrow": False, "font": {"color": "@soft", "size": 12},
    }  # fmt: skip


def coloured(figure: Spec, palette: str = "light") -> dict[str, Any]:
    """The specification with the palette's colours in place of the roles."""
    found: dict[str, Any] = _coloured(figure, PALETTES[palette])
    return found


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
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if isinstance(value, (np.floating, float)):
        return float(value) if np.isfinite(value) else None
    return int(value) if isinstance(value, np.integer) else value
