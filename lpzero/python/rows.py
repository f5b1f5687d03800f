"""Rows as a list that prints as a table, is shown as one in a notebook, and becomes a DataFrame."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from lpzero.errors import InputError

_WIDEST = 60  # letters of a cell
_MOST = 20  # rows that are printed


class Rows(list[dict[str, Any]]):
    """A list of rows, each a dict; `shown` are the columns that are printed, by default all.

    >>> Rows([{"proxy": "depth", "rho": 0.3019}, {"proxy": "snip", "rho": 0.9}])
    proxy    rho
    depth  0.302
    snip   0.900
    """

    def __init__(self, rows: Iterable[Mapping[str, Any]] = (), shown: Sequence[str] = ()) -> None:
        super().__init__(dict(row) for row in rows)
        self.shown = tuple(shown)

    def to_pandas(self) -> Any:
        """The rows as a pandas DataFrame, with every column."""
        try:
            from pandas import DataFrame
        except ImportError:
            raise InputError("pandas is not installed: pip install 'lpzero[pandas]'") from None
        return DataFrame(list(self))

    def __repr__(self) -> str:
        names = self._names
        lines = [names, *([_cell(row.get(name)) for name in names] for row in self[:_MOST])]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        is_text = [any(isinstance(row.get(name), str) for row in self) for name in names]
        text = [
            "  ".join(
                cell.ljust(width) if left else cell.rjust(width)
                for cell, width, left in zip(line, widths, is_text, strict=True)
            ).rstrip()
            for line in lines
        ]
        more = [f"... and {len(self) - _MOST} more"] if len(self) > _MOST else []
        return "\n".join([*text, *more]) if self else "no rows"

    def _repr_html_(self) -> str:
        names = self._names
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(_cell(row.get(name)))}</td>" for name in names) + "</tr>"
            for row in self[:_MOST]
        )
        more = f"<p>… and {len(self) - _MOST} more</p>" if len(self) > _MOST else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"

    @property
    def _names(self) -> list[str]:
        all_of_them = list(dict.fromkeys(key for row in self for key in row))
        return [name for name in self.shown if name in all_of_them] or all_of_them


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) < 1e4 else f"{value:.4g}"
    if isinstance(value, Mapping):
        value = ", ".join(f"{key} {_cell(one)}" for key, one in value.items())
    elif isinstance(value, (list, tuple)):
        value = "[" + ", ".join(map(_cell, value)) + "]"
    text = str(value)
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"
