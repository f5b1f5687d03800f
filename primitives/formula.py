"""A formula: an expression per block, its sum or mean over the blocks, and a sign.

The paper's form is two branches under one binary operation (`Formula.of`); any tree will do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from primitives.errors import FormulaError, did_you_mean
from primitives.expressions import Combine, Expression, branch, depth, walk

Reduction = Literal["sum", "mean"]
REDUCTIONS: tuple[Reduction, ...] = ("sum", "mean")
MAX_DEPTH = 60  # of an expression; keeps every recursion over a tree far from Python's limit
SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Formula:
    """reduction over blocks of the expression, times sign (+1 or -1)."""

    expression: Expression
    reduction: Reduction = "sum"
    sign: int = 1

    def __post_init__(self) -> None:
        if self.reduction not in REDUCTIONS:
            raise FormulaError(
                f"a formula reduces its blocks by 'sum' or 'mean', not {self.reduction!r}"
            )
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
        return parse(value["formula"])


def check_reduction(name: str) -> Reduction:
    """The name as a reduction, or an error with a hint."""
    for reduction in REDUCTIONS:
        if name == reduction:
            return reduction
    raise FormulaError(
        f"a formula starts with sum(...) or mean(...), not {name!r};"
        f" {did_you_mean(name, REDUCTIONS)}"
    )
