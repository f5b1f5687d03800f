"""Results that print as tables, that a notebook shows as such, and that become DataFrames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from lpzero.errors import InputError

_WIDEST = 60  # letters of a cell
_MOST = 10  # rows that are printed


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

    def column(self, name: str) -> list[float]:
        """The numbers of a column, NaN where there is none."""
        return [float("nan") if row.get(name) is None else float(row[name]) for row in self]

    def to_pandas(self) -> Any:
        """The rows as a pandas DataFrame, with every column."""
        try:
            from pandas import DataFrame
        except ImportError:
            raise InputError("pandas is not installed: pip install 'lpzero[pandas]'") from None
        return DataFrame(list(self))

    def __repr__(self) -> str:
        names = self._names
        lines = [names, *([cell(row.get(name)) for name in names] for row in self[:_MOST])]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        is_text = [any(isinstance(row.get(name), str) for row in self) for name in names]
        text = [
            "  ".join(
                word.ljust(width) if left else word.rjust(width)
                for word, width, left in zip(line, widths, is_text, strict=True)
            ).rstrip()
            for line in lines
        ]
        more = [f"... and {len(self) - _MOST} more"] if len(self) > _MOST else []
        return "\n".join([*text, *more]) if self else "no rows"

    def _repr_html_(self) -> str:
        names = self._names
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell(row.get(name)))}</td>" for name in names) + "</tr>"
            for row in self[:_MOST]
        )
        more = f"<p>… and {len(self) - _MOST} more</p>" if len(self) > _MOST else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"

    @property
    def _names(self) -> list[str]:
        all_of_them = list(dict.fromkeys(key for row in self for key in row))
        return [name for name in self.shown if name in all_of_them] or all_of_them


def cell(value: Any) -> str:
    """The value in a cell; a long text is cut in the middle, where formulas are alike."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) < 1e4 else f"{value:.4g}"
    if isinstance(value, Mapping):
        value = ", ".join(f"{key} {cell(part)}" for key, part in value.items())
    elif isinstance(value, (list, tuple)):
        value = "[" + ", ".join(map(cell, value)) + "]"
    text = str(value)
    half = (_WIDEST - 1) // 2
    return text if len(text) <= _WIDEST else f"{text[:half]}…{text[-half:]}"


class SearchResult(dict[str, Any]):
    """What a search found, as `lpzero search --format json` prints it."""

    @property
    def best_(self) -> dict[str, Any]:
        return dict(self["best"])

    @property
    def arch(self) -> dict[str, object]:
        """The architecture that was found, as its fields."""
        return dict(self["best"]["arch"])

    @property
    def score(self) -> float:
        """Its score by the proxy."""
        return float(self["best"]["score"])

    @property
    def parameters(self) -> int:
        """The number of its parameters."""
        return int(self["best"]["parameters"])

    @property
    def history_(self) -> Rows:
        """The trace: a row per architecture observed."""
        return Rows(self["trace"], ("step", "scored", "evaluations", "score", "target", "best"))

    def __repr__(self) -> str:
        best = self["best"]
        shown = {
            key: best[key] for key in ("target", "score", "parameters", "depth") if key in best
        }
        facts = ", ".join(f"{key} {value}" for key, value in shown.items())
        return f"{self['loop']} with {self['proxy']} on {self['space']}: {best['arch']} ({facts})"

    def _repr_html_(self) -> str:
        return Rows([self["best"]])._repr_html_()


class Exhausted(dict[str, Any]):
    """The formulas of the paper's space on a table, as `lpzero exhaust --format json` prints."""

    @property
    def formula(self) -> str:
        """The best formula, chosen on train."""
        return str(self["best"]["formula"])

    @property
    def rho(self) -> dict[str, float]:
        """Its rho on train, valid and test."""
        return {part: float(rho) for part, rho in self["best"]["rho"].items()}

    @property
    def top(self) -> Rows:
        """The best formulas."""
        return Rows(self["top"], ("formula", "rho", "complexity"))

    def __repr__(self) -> str:
        return repr(self.top)

    def _repr_html_(self) -> str:
        return self.top._repr_html_()


class TrainedTable(dict[str, Any]):
    """What was trained, as `lpzero train --format json` prints it; a table's path is `table`."""

    @property
    def table(self) -> str:
        """The path of the table, which every function takes as data."""
        return str(self["table"])

    def __repr__(self) -> str:
        return ", ".join(f"{key}: {cell(value)}" for key, value in self.items())
