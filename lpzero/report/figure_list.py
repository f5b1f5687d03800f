"""Every figure that a run has the data for, in the order of the page."""

from __future__ import annotations

from collections.abc import Iterator

from lpzero.report import figures as package
from lpzero.report.figures.drawn import Drawn, FigureKind, Material
from spaces.declarations import declared

KINDS: list[FigureKind] = sorted(
    declared(package.__name__, package.__path__, "FIGURE"), key=lambda kind: kind.place
)


def figures(material: Material, question: str | None = None) -> Iterator[Drawn]:
    """The figures of a run, or of one section of its page, each with its caption."""
    for kind in KINDS:
        if question in (None, kind.question):
            yield from kind.draw(material)
