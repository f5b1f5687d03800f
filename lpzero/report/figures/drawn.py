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

if TYPE_CHECKING:
    from lpzero.report.figures.transfer import Transfer
    from lpzero.runs.formula_run import FormulaRun


@dataclass(frozen=True, eq=False)
class Drawn:
    """A figure with the name of its files, its caption and its description in words."""

    name: str
    caption: str
    words: str
    figure: Figure

    @cached_property
    def svg(self) -> bytes:
        """The figure as SVG, for the page and for its own file."""
        return style.encode(self.figure, "svg")


@dataclass(frozen=True, eq=False)
class Material:
    """A run, and optional material: other runs, the rows of `lpzero rank`, a transfer."""

    run: FormulaRun
    beside: Sequence[FormulaRun] = ()
    ranking: Sequence[Mapping[str, Any]] | None = None
    transfer: Transfer | None = None


@dataclass(frozen=True, slots=True)
class FigureKind:
    """`draw` yields the figures that the material has data for; kinds are sorted by `place`."""

    place: int
    draw: Callable[[Material], Iterator[Drawn]]


def file_name(text: str) -> str:
    """A table's name as part of a file name; names come from files and may contain a path."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text)[:60]
