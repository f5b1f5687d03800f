"""Printing: results go to stdout, as text or as JSON; everything else goes to stderr.

On a terminal text fits its width: a table drops its last columns, which are the least important,
and cuts names and formulas in the middle; a number is shown whole or not at all. `--wide`, and a
pipe, get everything.
"""

from __future__ import annotations

import json
import logging
import re
import shutil
import sys
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import click

_LEAST_TEXT = 24  # characters that a name or a formula keeps before a column is dropped
_GAP = "  "
_CUT = "…"
_DIGITS = "0123456789.,-+"
_is_wide: ContextVar[bool] = ContextVar("is_wide", default=False)


@contextmanager
def wide(is_wide: bool = True) -> Iterator[None]:
    """A context in which everything is printed, whatever the width of the terminal."""
    before = _is_wide.set(is_wide)
    try:
        yield
    finally:
        _is_wide.reset(before)


def width() -> int | None:
    """The number of characters that a line may have; None if there is no limit."""
    return None if _is_wide.get() or not sys.stdout.isatty() else columns()


def columns() -> int:
    """The width of the terminal."""
    return shutil.get_terminal_size().columns


def print_json(value: Any) -> None:
    """Write the value to stdout as JSON; raises ValueError if a number is not finite."""
    click.echo(json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False))


def say(text: str = "", indent: str = "") -> None:
    """Write a line of a result to stdout; on a terminal it continues on lines that fit."""
    click.echo(_wrapped(printable(text), width(), indent))


def note(lines: str | Iterable[str]) -> None:
    """Write lines to stderr: progress and remarks, never results."""
    limit = columns() if sys.stderr.isatty() else None
    for line in [lines] if isinstance(lines, str) else lines:
        # Not by click, which would write past a bar that is shown.
        print(_wrapped(printable(line), limit), file=sys.stderr, flush=True)


def _wrapped(text: str, limit: int | None, indent: str = "") -> str:
    if limit is None:
        return text
    fill = textwrap.TextWrapper(
        limit, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join("\n".join(fill.wrap(line)) for line in text.split("\n"))


def print_rows(
    rows: Sequence[Mapping[str, Any]],
    form: str,
    title: str | None = None,
    significant: Collection[str] = (),
) -> None:
    """Write the rows to stdout: a JSON list of objects, or a table with a column per key.

    The keys are in the order of their importance: where not all columns fit, the last ones are left
    out. Numbers of the `significant` columns, which may be of any size, have eight significant
    digits.
    """
    if form == "json":
        print_json([dict(row) for row in rows])
        return
    if title is not None:
        say(title)
    keys = list(dict.fromkeys(key for row in rows for key in row))
    if width() is not None:  # a column without a value says nothing
        keys = [key for key in keys if any(row.get(key) is not None for row in rows)]
    if not keys:
        return
    shown = [_Column(key, [row.get(key) for row in rows], key in significant) for key in keys]
    fitting = shown if width() is None else _fitting(shown, width() or 0)
    for line in zip(*(column.lines() for column in fitting), strict=True):
        click.echo(_GAP.join(line).rstrip())
    left_out = [column.cells[0] for column in shown[len(fitting) :]]
    if left_out:
        say(f"({', '.join(left_out)}: --wide)")


class _Column:
    """A column of a table: its header and its cells as text, and the width that it may have."""

    def __init__(self, key: str, values: Sequence[Any], is_significant: bool) -> None:
        self.cells = [key.replace("_", " "), *(cell(value, is_significant) for value in values)]
        self.is_right = all(_is_numeric(value) for value in values)
        self.is_text = any(isinstance(value, str) for value in values)
        self.width = max(map(len, self.cells))

    @property
    def least(self) -> int:
        return min(self.width, _LEAST_TEXT) if self.is_text else self.width

    def lines(self) -> list[str]:
        """The cells, each as wide as the column."""
        cells = [cut(text, self.width) for text in self.cells]
        return [c.rjust(self.width) if self.is_right else c.ljust(self.width) for c in cells]


def _fitting(columns: Sequence[_Column], limit: int) -> list[_Column]:
    """The first columns that fit, text cut to at least some characters; one column always fits."""
    n = 1
    while n < len(columns) and _total(column.least for column in columns[: n + 1]) <= limit:
        n += 1
    kept = list(columns[:n])
    while _total(column.width for column in kept) > limit:
        widest = max((c for c in kept if c.is_text), key=lambda c: c.width, default=None)
        if widest is None or widest.width == 1:
            break
        widest.width -= 1
    return kept


def _total(widths: Iterable[int]) -> int:
    total = list(widths)
    return sum(total) + len(_GAP) * (len(total) - 1)


def cut(text: str, limit: int) -> str:
    """The text with its middle replaced by an ellipsis if it is longer; no number is cut in two."""
    if len(text) <= limit:
        return text
    head, tail = (limit - 1) - (limit - 1) // 2, (limit - 1) // 2
    first, last = text[:head], text[len(text) - tail :]
    if _is_inside_number(text, head):
        first = first.rstrip(_DIGITS)
    if _is_inside_number(text, len(text) - tail):
        last = last.lstrip(_DIGITS)
    return first + _CUT + last


def _is_inside_number(text: str, at: int) -> bool:
    return re.fullmatch(rf"[{re.escape(_DIGITS)}]{{2}}", text[at - 1 : at + 1]) is not None


def cell(value: Any, is_significant: bool = False) -> str:
    """A value as the tables show it: numbers to three decimals, intervals in brackets."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.8g}" if is_significant else f"{value:.3f}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(cell(part) for part in value) + "]"
    return printable(str(value))


def printable(text: str) -> str:
    """The text with escape sequences and other control characters spelt out, but for line ends."""
    return "".join(
        c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text
    )


def _is_numeric(value: Any) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))


class NoteHandler(logging.Handler):
    """Prints what the packages log as notes."""

    def emit(self, record: logging.LogRecord) -> None:
        note(f"note: {record.getMessage()}")
