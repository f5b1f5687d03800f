"""A figure as data: panels of points, lines or cells, their axes, and what is said about them.

`plotly_chart` renders a chart for the page, `drawn_chart` with matplotlib for papers. Every text is
plain: the renderers shorten, wrap and escape it, because names come from files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lpzero.arrays import FloatArray

Numbers = Sequence[float] | Sequence[int] | npt.NDArray[np.float64]
GREY = -1  # the colour of what stands in the background


@dataclass(frozen=True, eq=False, kw_only=True)
class Points:
    """Points at x (n,) and y (n,), with the text that is shown on hovering over each.

    `colour` counts the colours and the symbols from 0. `intervals` (n,) are ends along x.
    """

    x: Numbers
    y: Numbers
    hover: Sequence[str]
    name: str = ""
    colour: int = 0
    is_open: bool = False
    is_large: bool = False
    intervals: Sequence[tuple[float, float]] | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Line:
    """A line through x (n,) and y (n,), with gaps at NaN; a single point has a marker.

    `colour` counts the colours and the dashes from 0, or is GREY. `band` is the lower and the upper
    edge (n,) of what is shaded. `hover` is shown before the numbers; None shows nothing at all.
    """

    x: Numbers
    y: Numbers
    hover: str | None = ""
    name: str = ""
    colour: int = 0
    is_stepped: bool = False
    is_thin: bool = False
    band: tuple[Numbers, Numbers] | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Cells:
    """A heat map of values (rows, columns), the first row on top; cells with NaN are empty.

    `limits` are the values at the ends of the colours, `measure` is the title of their scale.
    """

    values: FloatArray
    hover: Sequence[Sequence[str]]
    limits: tuple[float, float]
    measure: str


Series = Points | Line | Cells


@dataclass(frozen=True, kw_only=True)
class Axis:
    """An axis; `names` are the labels of the places 0, 1, ..., of which y has the first on top."""

    title: str = ""
    names: Sequence[str] = ()
    limits: tuple[float, float] | None = None
    is_logarithmic: bool = False
    is_reversed: bool = False


@dataclass(frozen=True)
class Level:
    """A reference line across a panel at a value of y, or of x if it is vertical.

    Only lines at a value of y have a text; the title of the axis explains the others.
    """

    at: float
    text: str = ""
    is_vertical: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class Panel:
    """Series in one pair of axes."""

    series: Sequence[Series]
    x: Axis
    y: Axis
    title: str = ""
    levels: Sequence[Level] = ()
    is_square: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class Chart:
    """A figure: the name of its files, its caption, its description in words, and its panels.

    At most `columns` panels stand beside each other. A legend lists the series that have a name.
    `title` stands above the figure in files; a page has the caption instead.
    """

    name: str
    caption: str
    words: str
    panels: Sequence[Panel]
    columns: int = 1
    title: str = ""

    @property
    def names(self) -> list[str]:
        """The names of points and lines, which a legend lists."""
        series = [series for panel in self.panels for series in panel.series]
        names = [entry.name for entry in series if not isinstance(entry, Cells)]
        return [name for name in dict.fromkeys(names) if name]

    @property
    def cells(self) -> list[Cells]:
        """The heat maps, which share one scale of colours."""
        series = [series for panel in self.panels for series in panel.series]
        return [entry for entry in series if isinstance(entry, Cells)]

    @property
    def rows(self) -> int:
        """The number of rows of panels."""
        return -(-len(self.panels) // self.columns)


def shortened(text: object, most: int) -> str:
    """The text on one line, cut to at most this many letters."""
    line = " ".join(str(text).split())
    return line if len(line) <= most else line[: most - 1] + "…"
