"""Figures that a page quotes from another: which of them do not stand there.

blocks of the quoting page, text of the pages it names  ->  figures without their source

A paragraph, a list item or a row of a table that links to a page, or names an experiment's folder,
quotes it. A figure is found if a number of the page equals it at the precision that both have.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from experiments.pages import Block

_LINK = re.compile(r"\]\(([^)#]+\.md)(?:#[\w-]*)?\)|\]\(([^)#]*experiments/\w+)/?\)")
_FOLDER = re.compile(r"`(experiments/\w+)(?:/\w+\.py|/)?`")
NUMBER = re.compile(r"(?<![\w.,/])[-−+]?\d+\.\d+(?![\w]|\.\d)")
# No quotations: figures of an earlier version, code, sections, sizes of files and of spaces.
_NOT_QUOTED = re.compile(
    r"before,? [^.;)]*?\d\.\d+(?:,? (?:and )?-?\d\.\d+)*|`[^`]*`|\([^()]*\.md[^()]*\)"
    r"|[Ss]ections? [\d.]+(?:(?:,| and) [\d.]+)*|\d[\d.,]*(?:·10| [GM]B| million| billion)"
)


@dataclass(frozen=True, slots=True)
class Quotation:
    """A figure, where it stands, and the pages that it is said to be from."""

    page: str
    line: int
    figure: str
    sources: tuple[Path, ...]

    def __str__(self) -> str:
        names = ", ".join(f"{path.parent.name}/{path.name}" for path in self.sources)
        return f"{self.page}:{self.line}: {self.figure} is not on {names}"


def unfounded(
    parts: list[Block], text_of: Callable[[Path], str], root: Path
) -> Iterator[Quotation]:
    """Every quoted figure that is on none of the pages that its block names."""
    for quotation in quoted(parts, root):
        there = [number for path in quotation.sources for number in numbers(text_of(path))]
        if not any(agree(quotation.figure, other) for other in there):
            yield quotation


def quoted(parts: list[Block], root: Path) -> list[Quotation]:
    """The figures of the blocks that name a page."""
    return [
        Quotation(parts[0].page, line, figure, sources)
        for line, text, named in _quotations(parts)
        if (sources := _paths(named, root / parts[0].page, root))
        for figure in numbers(_NOT_QUOTED.sub(" ", text))
    ]


def without_source(parts: list[Block], root: Path) -> list[Quotation]:
    """The correlations, numbers of three decimals from -1 to 1, of blocks that name no page.

    A block that is quoted as a whole (>) is an example of what a command prints.
    """
    return [
        Quotation(parts[0].page, line, figure, ())
        for line, text, named in _quotations(parts)
        if not text.startswith(">") and not _paths(named, root / parts[0].page, root)
        for figure in numbers(_NOT_QUOTED.sub(" ", text))
        if abs(float(figure)) <= 1 and len(figure.partition(".")[2]) == 3
    ]


def names_a_page(part: Block, root: Path) -> bool:
    """Whether a block says which page its figures are from."""
    return bool(_paths(part.text, root / part.page, root))


def _quotations(parts: list[Block]) -> Iterator[tuple[int, str, str]]:
    """Line, text with figures, and text with links."""
    for part in parts:
        if part.kind == "text":
            yield part.line, part.text, part.text
        if part.kind == "table":
            named = part.caption if part.caption.endswith(":") else ""
            for number, row in enumerate(part.cells[1:], 2):
                text = " | ".join(row)
                yield part.line + number, text, f"{named} {text}"


def _paths(text: str, page: Path, root: Path) -> tuple[Path, ...]:
    """The pages that a text of this page is from."""
    found = [root / folder / "README.md" for folder in _FOLDER.findall(text)]
    for to_page, to_folder in _LINK.findall(text):
        path = (page.parent / (to_page or f"{to_folder}/README.md")).resolve()
        # Pages of the documentation link each other for their words; the CHANGELOG for figures too.
        is_source = path.is_relative_to(root / "experiments") or path == root / "docs/results.md"
        if is_source or page.name == "CHANGELOG.md":
            found.append(path)
    return tuple(path for path in found if path.exists())


def numbers(text: str) -> list[str]:
    """The figures of a text as they are written, with a plain minus."""
    return [number.replace("−", "-").lstrip("+") for number in NUMBER.findall(text)]


def agree(one: str, other: str) -> bool:
    """Whether two figures are equal at the precision that both have."""
    digits = min(len(number.partition(".")[2]) for number in (one, other))
    # Half a unit and a hair: a figure was rounded from more digits than either page shows.
    return abs(float(one) - float(other)) <= 0.5 * 10**-digits * (one != other) + 1e-9
