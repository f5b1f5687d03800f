"""Figures: each module defines the data of one kind of figure and makes a `Chart` of it.

A module of this package that declares `FIGURE` is discovered; a new figure of the page of a
campaign needs nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from lpzero.report.chart import Chart
from spaces.declarations import declared

if TYPE_CHECKING:
    from lpzero.report.figures.transfer import Transfer
    from lpzero.runs.formula_run import FormulaRun
    from lpzero.runs.run import Run

# The questions of a page that figures answer; the values are the names of sections.
FOUND, HOLDS, OTHERS, SEARCHED = "found", "holds", "others", "search"


@dataclass(frozen=True, eq=False)
class Material:
    """A run, and optional material: other runs, the rows of `lpzero rank`, a transfer."""

    run: FormulaRun
    beside: Sequence[Run] = ()
    ranking: Sequence[Mapping[str, Any]] | None = None
    transfer: Transfer | None = None


@dataclass(frozen=True, slots=True)
class FigureKind:
    """`charts` yields the figures that the material has data for; kinds are sorted by `place`.

    `question` is the section of the page that they belong to.
    """

    place: int
    question: str
    charts: Callable[[Material], Iterator[Chart]]


@lru_cache(maxsize=1)
def kinds() -> list[FigureKind]:
    """Every declared kind of figure, in the order of the page."""
    return sorted(declared(__name__, __path__, "FIGURE"), key=lambda kind: kind.place)


def charts(material: Material, question: str) -> Iterator[Chart]:
    """The figures of a section of the page that the material has data for."""
    for kind in kinds():
        if kind.question == question:
            yield from kind.charts(material)


def file_name(text: str) -> str:
    """A table's name as part of a file name; names come from files and may contain a path."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text)[:60]
