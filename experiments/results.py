"""docs/results.md: one line per claim, read from the tables of the experiments' pages.

    python -m experiments.results

A line names a row of a table and its columns. It has the printed figure beside ours, its interval,
the rows, the command and the version that measured it: all as the page has them. A line whose row
is not there once, or whose table has no line of measurement, is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from experiments.claims import OURS, PAPERS, Claims
from experiments.pages import MEASURED, Block, read
from lpzero import files
from lpzero.version import VERSION

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "results.md"
_LATER = re.compile(r"The rows? of ([^.]*?) with lpzero (\d[\w.]*\w)")
_HEAD = """# Results

One line per claim: what is printed in the paper or stands beside it, ours, its interval (or what the claim names), the rows, and the
command and version that measured it. Written by `python -m experiments.results` from the tables of the experiments' pages, which are
linked and say what the figures mean; do not edit it. `tests/experiments/test_figures.py` fails if it is not what that command
writes, or if a page states a figure that its linked page does not have.
"""  # noqa: E501


def page() -> str:
    """The whole page."""
    parts = [_HEAD]
    for title, beside, groups in (
        ("The papers", "printed", PAPERS),
        ("This project's own", "beside it", OURS),
    ):
        parts.append(f"## {title}\n")
        for name, claims in groups.items():
            head = ("claim", beside, "ours", "interval", "rows", "version", "command")
            rows = [row for one in claims for row in lines(one)]
            parts.append(f"### {name}\n\n{_table(head, rows)}")
    parts.append(_earlier())
    return "\n".join(parts)


def lines(claims: Claims) -> Iterator[tuple[str, ...]]:
    """A line for each row that the claims name."""
    parts = [part for part in _blocks(claims.page) if _is_in(part, claims.section)]
    text = " ".join(" ".join([*part.headings, part.text]) for part in parts)
    for row in claims.rows:
        block, cells, head = _row(claims, row)
        ours = _place(head, claims.ours)
        printed = claims.beside
        if claims.beside in head:
            place = head.index(claims.beside)
            ours = head.index(claims.ours, place) if claims.ours in head[place:] else ours
            printed = cells[place]
        elif claims.beside and not (claims.beside in text and re.search(r"\d", claims.beside)):
            raise LookupError(f"{claims}: the page does not say {claims.beside!r}")
        interval = cells[head.index(claims.interval, ours)] if claims.interval else ""
        n = cells[head.index(claims.n)] if claims.n in head else claims.n
        told = [number for number in re.findall(r"\d[\d,]*", claims.n) if number not in text]
        if told:
            raise LookupError(f"{claims}: the page does not say {told}")
        version, commands = measurement(block, _label(row[-1]))
        about = ", ".join(cell.rstrip("*") for cell in row if cell != n)
        link = f"[{claims.what}](../experiments/{claims.page}/README.md): {about}"
        yield (link, printed, cells[ours], interval, n, version, commands[claims.by])


def _row(claims: Claims, row: Sequence[str]) -> tuple[Block, list[str], list[str]]:
    """The one row that begins with these cells, in a table with these columns."""
    found = []
    for part in _blocks(claims.page):
        if part.kind != "table" or not _is_in(part, claims.section):
            continue
        head, *rows = part.cells
        if claims.ours not in head or (claims.interval and claims.interval not in head):
            continue
        above = [""] * len(row)
        for cells in rows:
            above = [cell or old for cell, old in zip(cells, above, strict=False)]
            if all(map(_matches, above, row)):
                found.append((part, cells, head))
    if len(found) != 1:
        raise LookupError(f"{claims.page}, {claims.section}: {row} is there {len(found)} times")
    return found[0]


def _matches(cell: str, wanted: str) -> bool:
    label = _label(cell)
    return label.startswith(wanted[:-1]) if wanted.endswith("*") else label == _label(wanted)


def _label(cell: str) -> str:
    return re.sub(r"[*`]", "", cell).strip()


def _place(head: list[str], column: str) -> int:
    if column not in head:
        raise LookupError(f"no column {column!r} in {head}")
    return head.index(column)


def _is_in(part: Block, section: Sequence[str]) -> bool:
    return all(any(words in heading for heading in part.headings) for words in section)


@cache
def _blocks(folder: str) -> list[Block]:
    return read(ROOT / "experiments" / folder / "README.md", ROOT)


def measurement(table: Block, label: str) -> tuple[str, list[str]]:
    """Version and commands of a table's line: the next of its section, or the one above it."""
    parts = read(ROOT / table.page, ROOT)
    measured = [
        (part, match)
        for part in parts
        if part.kind == "text"
        and table.headings[: len(part.headings)] == part.headings
        and (match := MEASURED.search(part.text))
    ]
    if not measured:
        raise LookupError(f"{table.place}: no line says how the table was measured")
    nearest = max(len(part.headings) for part, _ in measured)
    near = [one for one in measured if len(one[0].headings) == nearest]
    before = [one for one in near if one[0].line < table.line]
    after = [one for one in near if one[0].line > table.line]
    # A section has its line first, or one after each of its tables.
    tables = [part for part in parts if part.kind == "table" and part.headings == table.headings]
    is_first = bool(before) and before[0][0].line < tables[0].line
    part, match = before[-1] if is_first or not after else after[0]
    version = match[2]
    for names, later in _LATER.findall(part.text):
        if label in re.findall(r"`([^`]+)`", names):
            version = later
    return version, re.findall(r"`[^`]+`", match[5])


def _earlier() -> str:
    """The lines of measurement with another version than this one."""
    rows = []
    for path in sorted([*ROOT.glob("experiments/*/README.md"), *ROOT.glob("tests/*/README.md")]):
        for part in read(path, ROOT):
            match = MEASURED.search(part.text) if part.kind == "text" else None
            if match and match[2] != VERSION:
                folder = path.parent.relative_to(ROOT)
                where = f"[{folder}](../{folder}/README.md): {' / '.join(part.headings[1:])}"
                rows.append((where, match[1], match[2], match[5]))
    head = "## Not yet measured with this version\n"
    if not rows:
        return f"{head}\nEverything was measured with lpzero {VERSION}.\n"
    return f"{head}\n{_table(('section', 'date', 'version', 'command'), rows)}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"


if __name__ == "__main__":
    files.write_text(PAGE, page())
    print(PAGE.relative_to(ROOT))
