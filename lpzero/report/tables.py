"""HTML tables, each in a container that scrolls so that the page does not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lpzero.report.markup import Child, Markup, element, joined

NOTHING = "–"
_LARGE = 1000.0  # from here on decimals are noise


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: its content, its sort key, and how many columns it spans in a header."""

    shown: Child
    sort: float | str | None = None
    is_number: bool = False
    span: int = 1


def table(
    caption: str,
    header: Sequence[Sequence[Child | Cell]],
    rows: Iterable[Sequence[Child | Cell]],
    sortable: bool = False,
    name: str | None = None,
    records: Sequence[str] | None = None,
) -> Markup:
    """A table with header rows; the first cell of each row is its header.

    The page's script makes the last header row of a sortable table into buttons. `records` are the
    rows as JSON texts, for copying; such a table begins with few rows where there is a script.
    """
    head = [element("tr", *(_header(cell) for cell in line)) for line in header]
    body = [
        element(
            "tr",
            *(_cell(cell, i == 0) for i, cell in enumerate(row)),
            data_row=None if records is None else records[place],
        )
        for place, row in enumerate(rows)
    ]
    made = element(
        "table",
        element("caption", caption),
        element("thead", *head),
        element("tbody", *body),
        data_sortable=sortable,
        data_long=records is not None,
        id=name,
    )
    # Focusable, so that the keyboard can scroll it.
    return element("div", made, class_="scroll", tabindex=0, role="region", aria_label=caption)


def pairs(caption: str, values: Mapping[str, Child]) -> Markup:
    """A table of names and values."""
    rows = [
        element("tr", element("th", key, scope="row"), element("td", value))
        for key, value in values.items()
    ]
    made = element("table", element("caption", caption), element("tbody", *rows), class_="pairs")
    return element("div", made, class_="scroll", tabindex=0, role="region", aria_label=caption)


def number(value: Any, digits: int = 3) -> Cell:
    """A number, sorted by its value; a dash for None."""
    if value is None:
        return Cell(NOTHING, None, True)
    if isinstance(value, int) and not isinstance(value, bool):
        return Cell(f"{value:,}", value, True)
    text = f"{value:.{digits}f}" if abs(value) < _LARGE else f"{value:,.6g}"
    return Cell(text.replace("-", "−"), float(value), True)


def with_interval(value: float | None, interval: Sequence[float] | None) -> Cell:
    """A number with its interval."""
    if value is None:
        return Cell(NOTHING, None, True)
    shown = number(value).shown
    if not interval:
        return Cell(shown, value, True)
    low, high = (number(float(edge)).shown for edge in interval)
    around = element("span", f"[{low}, {high}]", class_="interval")
    return Cell(joined(shown, " ", around), value, True)


def _header(cell: Child | Cell) -> Markup:
    header = cell if isinstance(cell, Cell) else Cell(cell)
    is_group = header.span > 1
    return element(
        "th",
        header.shown,
        scope="colgroup" if is_group else "col",
        colspan=header.span if is_group else None,
    )


def _cell(cell: Child | Cell, is_first: bool) -> Markup:
    entry = cell if isinstance(cell, Cell) else Cell(cell)
    kind = "number" if entry.is_number else None
    if is_first:
        return element("th", entry.shown, scope="row", class_=kind, data_sort=entry.sort)
    return element("td", entry.shown, class_=kind, data_sort=entry.sort)
