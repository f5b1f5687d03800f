"""Markdown pages as their parts: text, lists and tables with the headings above them.

path of a page  ->  its blocks in order; a table knows the paragraph that introduces it
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_HEADING = re.compile(r"(#+) (.*)")
MEASURED = re.compile(
    r"Measured (\d{4}-\d\d-\d\d) with lpzero (\d[\w.]*), torch (\d[\w.]*), NumPy (\d[\w.]*)"
    r" by (`[^`]+`(?:(?:, | and )`[^`]+`)*)\."
)
_ITEM = re.compile(r"(- |\d+\. )")


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, a list item, code or a table, with the headings above it, outermost first."""

    page: str
    line: int
    kind: str  # text, code or table
    headings: tuple[str, ...]
    lines: tuple[str, ...]
    caption: str = ""  # of a table: the text before it in the same section

    @property
    def text(self) -> str:
        """The block in one line."""
        return " ".join(line.strip() for line in self.lines)

    @property
    def place(self) -> str:
        """Where a reader finds it."""
        return f"{self.page}:{self.line}"

    @property
    def cells(self) -> list[list[str]]:
        """The rows of a table without the rule under its head, cell by cell; the head first."""
        rows = [
            [cell.strip() for cell in line.strip().strip("|").split("|")] for line in self.lines
        ]
        return [row for number, row in enumerate(rows) if number != 1]


def blocks(text: str, page: str) -> list[Block]:
    """The parts of a page, in order."""
    found: list[Block] = []
    headings: list[tuple[int, str]] = []
    for start, kind, lines in _groups(text.splitlines()):
        if kind == "heading":
            match = _HEADING.match(lines[0])
            assert match is not None
            level = len(match[1])
            headings = [one for one in headings if one[0] < level] + [(level, match[2])]
            continue
        titles = tuple(title for _, title in headings)
        caption = ""
        if kind == "table":
            before = [
                one
                for one in found
                if one.headings == titles
                and one.kind == "text"
                and not one.text.startswith("Measured 2")
            ]
            caption = before[-1].text if before else ""
        found.append(Block(page, start, kind, titles, tuple(lines), caption))
    return found


def read(path: Path, root: Path) -> list[Block]:
    """The parts of the page in this file."""
    return blocks(path.read_text(encoding="utf-8"), str(path.relative_to(root)))


def _groups(lines: list[str]) -> Iterator[tuple[int, str, list[str]]]:
    """Lines that belong together, with the number of the first and their kind."""
    group: list[str] = []
    start, kind, is_fenced = 0, "", False
    for number, line in enumerate([*lines, ""], 1):
        now = "code" if is_fenced else _kind(line, kind)
        if line.startswith("```"):
            is_fenced, now = not is_fenced, "code"
        is_new = now != kind or (now == "text" and _ITEM.match(line)) or now == "heading"
        if group and (is_new or not now):
            yield start, kind, group
            group = []
        if now:
            start = start if group else number
            group.append(line)
        kind = now


def _kind(line: str, before: str) -> str:
    if not line.strip():
        return ""
    if _HEADING.match(line):
        return "heading"
    if line.startswith("|"):
        return "table"
    if line.startswith("    ") and before in ("", "code"):
        return "code"
    return "text"
