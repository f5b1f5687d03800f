"""The common part of runs that find formulas, campaigns and exhaustive runs; scores row by row.

Figures are drawn from the winner's scores and the targets (`column`, `sheet`) without the table.
They contain the table's targets, so they are only written into a run's directory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

from lpzero.arrays import FloatArray
from lpzero.runs.run import Run
from primitives.expressions import Apply, Combine, Leaf, drop_dead, walk
from primitives.formula import Formula
from primitives.space_size import SpaceSize

if TYPE_CHECKING:
    from spaces.tables import ColumnTable, Table

Row = Mapping[str, Any]
ONE_SIDED = "one-sided"
UPSTREAM = "flexibert-upstream"  # the space that --upstream-dims selects


class PairRho(NamedTuple):
    """The rho of a formula that combines two statistics under an operation."""

    operation: str
    one: str
    other: str
    rho: float


@dataclass(frozen=True, eq=False)
class FormulaRun(Run, ABC):
    """A run that judged formulas on tables.

    `tables`: name, space, target, digest of each. `scores` are the winner's, None without a result;
    `hall` and `history` are rows; `counts` are tried, evaluated, repeats; `rejected` is rule to
    count.
    """

    tables: Sequence[Mapping[str, str]]
    scores: Mapping[str, Any] | None
    hall: Sequence[Row]
    history: Sequence[Row]
    counts: Mapping[str, int]
    rejected: Mapping[str, int]

    @property
    @abstractmethod
    def settings(self) -> Mapping[str, Any]:
        """The settings that determined which formulas were judged."""

    @property
    @abstractmethod
    def fitness_rows(self) -> str:
        """A description of the rows that the fitness was measured on."""

    @abstractmethod
    def space_size(self) -> SpaceSize | None:
        """The size of the space of formulas; None if it is not the paper's space."""

    @abstractmethod
    def pairs(self) -> Iterator[PairRho]:
        """The rho on train of every pair of statistics that was judged."""

    def best_by_size(self) -> Iterator[Row]:
        """Rows with `formula`, `complexity` and `fitness`: the best that was tried of each size.

        Kinds of runs that keep all formulas override it; the hall of fame has the best anyway.
        """
        return iter(())

    @property
    def best(self) -> Mapping[str, Any] | None:
        """The winner's entry in the result, if there is one."""
        return None if self.result is None else self.result.get("best")

    def judged(self, table: str) -> Mapping[str, Mapping[str, Any]]:
        """The winner's judgement on each part of a table."""
        assert self.best is not None, "there is a winner"
        parts: Mapping[str, Mapping[str, Any]] = self.best["judged"][table]
        return parts

    def summary(self, table: str) -> Mapping[str, Any]:
        """The result's entry for a table; empty without a result."""
        entries = [] if self.result is None else self.result["tables"]
        return next((entry for entry in entries if entry["name"] == table), {})

    @property
    def count(self) -> Mapping[str, Any] | None:
        """The best count's line of the result, if it has one."""
        return None if self.result is None else self.result.get("count")

    def verdict(self, table: str) -> str | None:
        """The sentence on the winner on a table; None if the result holds none."""
        result = {} if self.result is None else self.result
        text = result.get("verdict_by_table", {}).get(table) or result.get("verdict")
        return None if text is None else str(text)

    def floor(self, table: str) -> Mapping[str, Any] | None:
        """The permutation floor on a table; None if the result holds none."""
        lines = [] if self.result is None else self.result.get("floor", [])
        return next((line for line in lines if line["table"] == table), None)

    def counters(self, table: str) -> Sequence[Mapping[str, Any]]:
        """The lines of the counters on a table."""
        lines = [] if self.result is None else self.result["counters"]
        return [line for line in lines if line["table"] == table]


def pairs_in(formula: Formula, rho: float) -> Iterator[PairRho]:
    """The pairs of statistics in each term of a formula, under the term's outermost operation.

    In a term of one binary the pair is that of its branches; in deeper terms every pair of
    statistics that occur together counts. A one-sided term pairs its statistic with itself, a term
    of sizes alone has no pair.
    """
    for term in formula.terms:
        expression = drop_dead(term.expression)
        if expression is None:
            continue
        top = expression
        while isinstance(top, Apply):
            top = top.operand
        names = (n.name for n in walk(expression) if isinstance(n, Leaf) and not n.is_size)
        leaves = list(dict.fromkeys(names))
        operation = top.operation if isinstance(top, Combine) else ONE_SIDED
        pairs = combinations(leaves, 2) if len(leaves) > 1 else ((name, name) for name in leaves)
        for one, other in pairs:
            yield PairRho(operation, one, other, rho)


def column(
    table: Table | ColumnTable,
    parts: Mapping[str, Iterable[Any]],
    scores: FloatArray,
    rivals: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Id, part, target and score (n,) of every row as JSON values, and what describes the rows.

    Tables with networks have each architecture and its sizes. `rivals` are lines on other proxies
    (`lpzero.judgement.rivals.rival_lines`).
    """
    labels = {int(row): part for part, rows in parts.items() for row in rows}
    columns = {
        "id": list(table.ids),
        "part": [labels[row] for row in range(len(table))],
        "target": table.targets.tolist(),
        "score": scores.tolist(),
        "rivals": list(rivals),
    }
    if table.space is None:
        return columns
    space = table.space
    return columns | {
        "arch": [space.to_json(arch) for arch in table.archs],
        "sizes": {
            "depth": [space.depth(arch) for arch in table.archs],
            "width": [space.width(arch) for arch in table.archs],
            "parameters": [space.parameters(arch) for arch in table.archs],
        },
    }


def sheet(formula: str, columns: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The formula and its columns on every table."""
    return {"formula": formula, "tables": dict(columns)}
