"""Results that print as tables, that a notebook shows as such, and that become DataFrames.

The rows' types say to mypy and to editors what a row has; a test compares them with real rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar, cast

from lpzero.errors import InputError

if TYPE_CHECKING:
    from pandas import DataFrame

_WIDEST = 60  # letters of a cell
_MOST = 10  # rows that are printed


class Judged(TypedDict):
    """How well scores rank the rows of a table, or of a part of it: `lpzero.judgement`."""

    n: int
    rho: float
    rho_untied: float
    rho_ci: tuple[float, float]
    tau: float
    tau_ci: tuple[float, float]
    top_precision: float
    rho_given_params: float | None
    rho_within: float | None
    n_within: int
    pairs_within: float | None
    n_pairs: int
    flaw: str | None


class RankedRow(Judged, total=False):
    """A proxy's row of `lpzero.rank`: all rows of the table first, then the parts of the split."""

    proxy: str
    train: Judged
    valid: Judged
    test: Judged
    missing: int
    in_sample: bool
    seconds: float | None
    direction: int
    needs: str
    paper: str | None
    definition: str
    published: list[dict[str, object]]
    rho_exact: float
    alike: float
    rho_seeds: list[float]
    rho_seeds_mean: float
    rho_seeds_std: float
    rho_batches: list[float]
    rho_batches_mean: float
    rho_batches_std: float


class FormulaRow(TypedDict, total=False):
    """A formula of a hall of fame; measures on single tables are under the table's name."""

    formula: str
    complexity: int
    front: bool
    fitness: float
    id: int
    generation: int
    operator: str
    parents: str
    key: str


class GenerationRow(TypedDict):
    """A generation of a discovery: what was tried until then, and the best formula."""

    generation: int
    tried: int
    evaluated: int
    rejected: int
    repeats: int
    fitness: float
    complexity: int
    best: int
    formula: str


class StepRow(TypedDict, total=False):
    """An observed architecture in the trace of a search."""

    step: int
    scored: int
    evaluations: int
    arch: dict[str, object]
    score: float | None
    target: float | None
    best: float | None


class FoundArch(TypedDict, total=False):
    """An architecture that a search found: its score, its target, and its costs."""

    arch: dict[str, object]
    score: float | None
    target: float | None
    parameters: int
    decoder_parameters: int
    flops: int
    depth: int
    width: int
    latency: float
    outside_table: list[str]


R = TypeVar("R", bound=Mapping[str, Any])


class Rows(list[R], Generic[R]):
    """A list of rows, each a dict; `shown` are the columns that are printed, by default all.

    >>> Rows([{"proxy": "depth", "rho": 0.3019}, {"proxy": "snip", "rho": 0.9}])
    proxy    rho
    depth  0.302
    snip   0.900
    """

    def __init__(self, rows: Iterable[Mapping[str, Any]] = (), shown: Sequence[str] = ()) -> None:
        super().__init__(cast(R, dict(row)) for row in rows)
        self.shown = tuple(shown)

    def column(self, name: str) -> list[float]:
        """The numbers of a column, NaN where there is none."""
        return [float("nan") if row.get(name) is None else float(row[name]) for row in self]

    def to_pandas(self) -> DataFrame:
        """The rows as a pandas DataFrame, with every column."""
        try:
            import pandas
        except ImportError:
            raise InputError("pandas is not installed: pip install 'lpzero[pandas]'") from None
        return pandas.DataFrame(list(self))

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


class SearchResult(dict[str, object]):
    """What a search found, as `lpzero search --format json` prints it."""

    @property
    def best_(self) -> FoundArch:
        """The architecture that was found, with its score, target and costs."""
        return cast(FoundArch, dict(cast(FoundArch, self["best"])))

    @property
    def arch(self) -> dict[str, object]:
        """The architecture that was found, as its fields."""
        return dict(self.best_["arch"])

    @property
    def score(self) -> float | None:
        """Its score by the proxy."""
        return self.best_["score"]

    @property
    def parameters(self) -> int:
        """The number of its parameters."""
        return self.best_["parameters"]

    @property
    def runner_up_(self) -> FoundArch | None:
        """The second best, with its costs; None if there was no other."""
        return cast("FoundArch | None", self.get("runner_up"))

    @property
    def answers_(self) -> list[str]:
        """The place among the table's rows, the target's interval, what the runner-up costs."""
        from lpzero.search.answers import sentences

        return [*sentences(self), *cast("list[str]", self.get("remarks", []))]

    @property
    def history_(self) -> Rows[StepRow]:
        """The trace: a row per architecture observed."""
        shown = ("step", "scored", "evaluations", "score", "target", "best")
        return Rows(cast("list[StepRow]", self["trace"]), shown)

    def __repr__(self) -> str:
        best = self.best_
        facts = ", ".join(
            f"{key} {cell(best.get(key))}" if key != "parameters" else f"{key} {best[key]:,}"
            for key in ("target", "score", "parameters", "depth")
            if key in best
        )
        head = f"{self['loop']} with {self['proxy']} on {self['space']}: {best['arch']} ({facts})"
        return "\n".join([head, *(f"  {line}" for line in self.answers_)])

    def _repr_html_(self) -> str:
        said = "".join(f"<p>{escape(line)}</p>" for line in self.answers_)
        return Rows([self.best_])._repr_html_() + said


class Exhausted(dict[str, object]):
    """The formulas of the paper's space on a table, as `lpzero exhaust --format json` prints."""

    @property
    def formula(self) -> str:
        """The best formula, chosen on train."""
        return str(self._best["formula"])

    @property
    def rho(self) -> dict[str, float]:
        """Its rho on train, valid and test."""
        return {part: float(rho) for part, rho in self._best["rho"].items()}

    @property
    def top(self) -> Rows[FormulaRow]:
        """The best formulas."""
        return Rows(cast("list[FormulaRow]", self["top"]), ("formula", "rho", "complexity"))

    @property
    def _best(self) -> Mapping[str, Any]:
        return cast("Mapping[str, Any]", self["best"])

    def __repr__(self) -> str:
        return repr(self.top)

    def _repr_html_(self) -> str:
        return self.top._repr_html_()


class TrainedTable(dict[str, object]):
    """What was trained, as `lpzero train --format json` prints it; a table's path is `table`."""

    @property
    def table(self) -> str:
        """The path of the table, which every function takes as data."""
        return str(self["table"])

    def __repr__(self) -> str:
        return ", ".join(f"{key}: {cell(value)}" for key, value in self.items())
