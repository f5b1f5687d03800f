"""The verbs as functions: their options are those of the command line, results print as tables.

`Rows` is a list of rows that prints as a table, is shown as one in a notebook, and becomes a
DataFrame.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lpzero.errors import InputError
from lpzero.options import make
from lpzero.verbs import Screen
from lpzero.verbs.call import call, request_of
from lpzero.verbs.groups import TableFile
from spaces.minibatch import Minibatch

if TYPE_CHECKING:
    from lpzero.proxies import Context
    from spaces.base import Space
    from spaces.tables import ColumnTable, Table

_RANKED = ("proxy", "n", "rho", "rho_ci", "tau", "rho_given_params", "rho_within")


def load_table(name: str | Path, *, data: str | Path | None = None, **options: Any) -> Any:
    """The table of that name, or in that file: CSV, JSON lines, Parquet, or a trained table.

    A file's rows are architectures of `space` (a name or my_module:SPACE); without one, columns of
    numbers. `target` is the column to rank by. Options: space, target, smaller_is_better, ids,
    task.
    """
    return make(TableFile, options).load(name, None if data is None else str(data))


def context(**options: Any) -> Context:
    """How networks are run, from the options that `rank` and `predict` share."""
    made: Context = request_of("rank", None, **flat(options)).context()
    return made


def rank(
    table: str | Path | Table | ColumnTable,
    proxies: str | Sequence[str] | None = None,
    **options: Any,
) -> Rows:
    """A row per proxy against the table's targets, best first.

    Without proxies all that apply are ranked, but for released recipes and those that run on more
    inputs than the others (see docs/proxies.md). A proxy is a name, a formula, an exported file or
    a run's directory. Options: those of `lpzero rank`, such as seed, loss, device, cache, jobs,
    out; and progress.
    """
    texts = [proxies] if isinstance(proxies, str) else list(proxies or ())
    return Rows(_result("rank", table, proxies=tuple(map(str, texts)), **options), _RANKED)


def exhaust(table: str | Path | Table, **options: Any) -> dict[str, Any]:
    """Every formula of the paper's space on the table, as `lpzero exhaust --format json` prints it.

    Options: those of `lpzero exhaust`, such as unaries, terms, by, top, out; and progress.
    """
    return dict(_result("exhaust", table, **options))


def train(space: str, **options: Any) -> dict[str, Any]:
    """A table trained from architectures of the space, or with `supernet=True` one supernet.

    What `lpzero train --format json` prints; its options, such as n_archs, seeds, steps, out; and
    progress.
    """
    return dict(_result("train", space, **options))


def search(
    space: str | Space[Any],
    proxy: str | None = None,
    loop: str | None = None,
    *,
    bounds: Mapping[str, tuple[float | None, float | None]] | None = None,
    **options: Any,
) -> SearchResult:
    """The best architecture that a loop finds, guided by a proxy.

    `bounds` are the least and most of parameters, flops, ...; the other options are those of
    `lpzero search`, the constants of the loop among them.
    """
    from lpzero.search.constraints import COSTS
    from spaces.user_modules import address_of

    for cost, pair in (bounds or {}).items():
        if cost not in COSTS:
            raise InputError(f"{cost!r} cannot be bounded; use one of {', '.join(COSTS)}")
        for word, value in zip(("min", "max"), pair, strict=True):
            options |= {} if value is None else {f"{word}_{cost.replace('-', '_')}": value}
    options |= {} if proxy is None else {"proxies": (proxy,)}
    options |= {} if loop is None else {"loops": (loop,)}
    name = space if isinstance(space, str) else address_of(space)
    return SearchResult(_result("search", name, **options))


def _result(verb: str, *arguments: Any, progress: bool = False, **options: Any) -> Any:
    return call(verb, request_of(verb, *arguments, **flat(options)), Screen(progress)).result


def flat(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as a request has them: without None, lists as tuples, the fields of a batch."""
    given = {name: value for name, value in options.items() if value is not None}
    batch = given.get("batch")
    if isinstance(batch, Minibatch):
        del given["batch"]
        fields: dict[str, Any] = {"batch": batch.inputs, "length": batch.length}
        fields["corpus"] = None if batch.corpus is None else batch.corpus.path
        fields["tokenizer"] = None if batch.tokenizer is None else batch.tokenizer.path
        given |= {name: value for name, value in fields.items() if value is not None}
    return {k: tuple(v) if isinstance(v, list) else v for k, v in given.items()}


class SearchResult(dict[str, Any]):
    """What a search found, as `lpzero search --format json` prints it."""

    @property
    def best_(self) -> dict[str, Any]:
        return dict(self["best"])

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
