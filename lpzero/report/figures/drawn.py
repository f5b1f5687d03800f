"""What a figure's module gives to a page, and what it is given.

A module of this package that declares `FIGURE` is found: it is all that a new figure needs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from lpzero.report.figures import style

if TYPE_CHECKING:
    from lpzero.report.figures.transfer import Transfer
    from lpzero.runs.formula_run import FormulaRun


@dataclass(frozen=True, eq=False)
class Drawn:
    """A figure with the name of its files, what stands beneath it, and what it says in words."""

    name: str
    caption: str
    words: str
    figure: Figure

    @cached_property
    def svg(self) -> bytes:
        """The figure as SVG: it is on the page and beside it."""
        return style.encode(self.figure, "svg")


@dataclass(frozen=True, eq=False)
class Material:
    """A run and what it may be shown with: other runs, the rows of `lpzero rank`, a transfer."""

    run: FormulaRun
    beside: Sequence[FormulaRun] = ()
    ranking: Sequence[Mapping[str, Any]] | None = None
    moved: Transfer | None = None


@dataclass(frozen=True, slots=True)
class FigureKind:
    """`draw` gives the figures that there are data for; kinds follow each other by `place`."""

    place: int
    draw: Callable[[Material], Iterator[Drawn]]


def file_name(text: str) -> str:
    """A table's name as part of a file's name: names come from files and may hold a path."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text)[:60]
