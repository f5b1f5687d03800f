"""HTML from Python values: all text is escaped; markup has its own type.

Tables are in a container that scrolls, so that the page does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

_NAME = re.compile(r"[a-z][a-z0-9-]*")
_VOID = frozenset({"meta", "link", "img", "br", "input", "col"})
Attribute = str | int | float | bool | None
NOTHING = "–"
_LARGE = 1000.0  # from here on decimals are noise


class Markup(str):
    """Text that is already HTML; only this module and our own generators create it."""

    __slots__ = ()


Child = str | int | float | None


def element(name: str, /, *children: Child, **attributes: Attribute) -> Markup:
    """The element with these children; `class_` is class, `data_key` is data-key.

    An attribute that is None or False is omitted; True has no value.

    >>> element("td", "a < b", class_="number")
    '<td class="number">a &lt; b</td>'
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{joined(*children)}</{name}>")


def joined(*children: Child) -> Markup:
    """The children concatenated, escaped unless they are markup; None is skipped."""
    return Markup(
        "".join(
            child if isinstance(child, Markup) else escape(encodable(str(child)))
            for child in children
            if child is not None
        )
    )


def _attribute(key: str, value: Attribute) -> str:
    name = key.rstrip("_").replace("_", "-")
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not the name of an attribute")
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{escape(encodable(str(value)))}"'


def encodable(text: str) -> str:
    """The text; a byte of a path that is not UTF-8 is written as an escape."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


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
