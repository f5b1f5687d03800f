"""The interface between the page and the module of a figure.

A module of this package that declares `FIGURE` is discovered; a new figure needs nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from lpzero.report.figures import style
from lpzero.report.figures.plotly_spec import Spec

if TYPE_CHECKING:
    from lpzero.report.figures.transfer import Transfer
    from lpzero.runs.formula_run import FormulaRun
    from lpzero.runs.run import Run

# The questions of a page that figures answer; the values are the names of sections.
FOUND, HOLDS, OTHERS, SEARCHED = "found", "holds", "others", "search"


@dataclass(frozen=True, eq=False)
class Drawn:
    """A figure with the name of its files, its caption and its description in words.

    `spec` is the figure for a browser, a Plotly specification as plain JSON values. `draw` makes
    the same figure with matplotlib, for files and for readers without script; it is called when
    it is needed, because drawing takes most of the time of a report.
    """

    name: str
    caption: str
    words: str
    spec: Spec
    draw: Callable[[], Figure]

    @cached_property
    def figure(self) -> Figure:
        """The figure for files."""
        return self.draw()

    @cached_property
    def svg(self) -> bytes:
        """The figure as SVG, for the page and for its own file."""
        return style.encode(self.figure, "svg")


@dataclass(frozen=True, eq=False)
class Material:
    """A run, and optional material: other runs, the rows of `lpzero rank`, a transfer."""

    run: FormulaRun
    beside: Sequence[Run] = ()
    ranking: Sequence[Mapping[str, Any]] | None = None
    transfer: Transfer | None = None


@dataclass(frozen=True, slots=True)
class FigureKind:
    """`draw` yields the figures that the material has data for, sorted by `place`.

    `question` is the section of the page that they belong to.
    """

    place: int
    question: str
    draw: Callable[[Material], Iterator[Drawn]]


def file_name(text: str) -> str:
    """A table's name as part of a file name; names come from files and may contain a path."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text)[:60]
