"""A formula of one term: an expression per block, its reduction over positions, and a sign.

The paper's form is two branches under one binary operation, summed or averaged over blocks
(`Formula.of`); any tree and any reduction will do. Products of terms are `primitives.score`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from primitives.errors import FormulaError
from primitives.expressions import Combine, Expression, Leaf, branch, depth, drop_dead, walk
from primitives.reductions import (
    PAPER_REDUCTIONS,
    POSITION_REDUCTIONS,
    Reduction,
    ReductionFacts,
    check_reduction,
)

__all__ = ["MAX_DEPTH", "PAPER_REDUCTIONS", "REDUCTIONS", "Formula", "Reduction", "check_reduction"]

REDUCTIONS = PAPER_REDUCTIONS  # those of the paper's space, which is what enumerations run over
MAX_DEPTH = 60  # of an expression; keeps every recursion over a tree far from Python's limit
SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Formula:
    """reduction over positions of the expression, times sign (+1 or -1)."""

    expression: Expression
    reduction: Reduction = "sum"
    sign: int = 1

    def __post_init__(self) -> None:
        if self.reduction not in POSITION_REDUCTIONS:
            known = ", ".join(POSITION_REDUCTIONS)
            raise FormulaError(f"a formula reduces its blocks by {known}, not {self.reduction!r}")
        if self.sign not in (1, -1):
            raise FormulaError(f"a formula's sign is 1 or -1, not {self.sign!r}")
        if depth(self.expression) > MAX_DEPTH:
            raise FormulaError(f"the expression is deeper than {MAX_DEPTH} levels; shorten it")

    @classmethod
    def of(
        cls,
        operation: str,
        left: tuple[str, Sequence[str]],
        right: tuple[str, Sequence[str]],
        reduction: Reduction = "sum",
        sign: int = 1,
    ) -> Formula:
        """The paper's form: two (statistic, chain) branches under one binary operation."""
        first, second = branch(left[0], *left[1]), branch(right[0], *right[1])
        return cls(Combine(operation, first, second), reduction, sign)

    def __str__(self) -> str:
        return f"{'-' if self.sign < 0 else ''}{self.reduction}({self.expression})"

    def __neg__(self) -> Formula:
        return Formula(self.expression, self.reduction, -self.sign)

    @property
    def complexity(self) -> int:
        """The number of nodes in the expression."""
        return sum(1 for _ in walk(self.expression))

    @property
    def terms(self) -> tuple[Formula, ...]:
        """The one term, with sign +1: what a `Score` has several of."""
        return (self if self.sign > 0 else -self,)

    @property
    def columns(self) -> tuple[str, ...]:
        """No columns: only a `Score` has them."""
        return ()

    @property
    def statistics(self) -> tuple[str, ...]:
        """The statistics that the value depends on, in the order of the text."""
        return tuple(leaf.name for leaf in self._leaves() if not leaf.is_size)

    @property
    def sizes(self) -> tuple[str, ...]:
        """The sizes that the value depends on, in the order of the text."""
        return tuple(leaf.name for leaf in self._leaves() if leaf.is_size)

    @property
    def positions(self) -> ReductionFacts:
        """What is declared of the formula's reduction."""
        return POSITION_REDUCTIONS[self.reduction]

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready value that `from_json` reads back."""
        return {"schema": SCHEMA, "formula": str(self)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Formula:
        """The formula that `to_json` wrote; the text goes through the parser."""
        from primitives.parser import parse

        if not isinstance(value, Mapping) or set(value) != {"schema", "formula"}:
            given = sorted(map(str, value)) if isinstance(value, Mapping) else type(value).__name__
            raise FormulaError(f"expected an object with 'schema' and 'formula', got {given}")
        if value["schema"] != SCHEMA:
            raise FormulaError(
                f"formula schema {value['schema']!r} was given, this version reads {SCHEMA};"
                " update the package"
            )
        found = parse(value["formula"])
        if not isinstance(found, Formula):
            raise FormulaError(f"{found} has several terms; expected a formula of one term")
        return found

    def _leaves(self) -> list[Leaf]:
        alive = drop_dead(self.expression)
        nodes = [] if alive is None else walk(alive)
        return list(dict.fromkeys(node for node in nodes if isinstance(node, Leaf)))
