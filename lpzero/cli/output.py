"""Printing: results go to stdout, as aligned text or as JSON; everything else goes to stderr."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import click

# Rich truncates to the width it assumes for a pipe, so a pipe gets a large width.
_PIPE_WIDTH = 10_000


def print_json(value: Any) -> None:
    """Write the value to stdout as JSON; raises ValueError if a number is not finite."""
    click.echo(json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False))


def print_rows(
    rows: Sequence[Mapping[str, Any]],
    form: str,
    title: str | None = None,
    significant: Collection[str] = (),
) -> None:
    """Write the rows to stdout: a JSON list of objects, or a table with a column per key.

    Numbers of the `significant` columns, which may be of any size, have eight significant digits.
    """
    if form == "json":
        print_json([dict(row) for row in rows])
        return
    from rich.console import Console
    from rich.table import Table

    shown = None if title is None else printable(title)
    table = Table(title=shown, title_justify="left", box=None, pad_edge=False)
    columns = list(dict.fromkeys(key for row in rows for key in row))
    for column in columns:
        numeric = all(_is_numeric(row.get(column)) for row in rows)
        table.add_column(column.replace("_", " "), justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*(cell(row.get(column), column in significant) for column in columns))
    width = None if sys.stdout.isatty() else _PIPE_WIDTH
    Console(width=width, highlight=False, markup=False, emoji=False).print(table)


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


def note(lines: str | Iterable[str]) -> None:
    """Write lines to stderr: progress and remarks, never results."""
    for line in [lines] if isinstance(lines, str) else lines:
        click.echo(printable(line), err=True)


class NoteHandler(logging.Handler):
    """Prints what the packages log as notes."""

    def emit(self, record: logging.LogRecord) -> None:
        note(f"note: {record.getMessage()}")
