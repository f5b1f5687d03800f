"""Score a formula on tensors, one operation after another: the reference for anything faster.

Terms are computed block by block (`primitives.block_values`), reduced over positions, and put
together by the operations above them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from primitives.block_values import OVERFLOW, Tensors, block_values, evaluate
from primitives.errors import TensorError
from primitives.formula import Formula
from primitives.network import Block, NetworkValues, as_network
from primitives.rejection import NON_FINITE, Rejected
from primitives.score import SIGNED_LOG, AnyFormula, Column, ScoreTree, Transform

__all__ = [
    "Block",
    "NetworkValues",
    "Tensors",
    "block_values",
    "combine",
    "evaluate",
    "score",
]

ValueOf = Callable[[Formula | Column], float | Rejected]

_UNDEFINED = Rejected(
    NON_FINITE, "an operation on terms is not defined here: a root or logarithm of a negative, 1/0"
)


def score(
    formula: AnyFormula,
    network: NetworkValues | Sequence[Block],
    columns: Mapping[str, float] | None = None,
) -> float | Rejected:
    """The formula's value for one architecture, or why it has none.

    Any intermediate result that leaves float64 rejects the formula: a later sigmoid or relu would
    otherwise turn the overflow into a harmless-looking number.
    """
    reader = _Reader(as_network(network), columns or {})
    return combine(formula, reader.value)


def combine(formula: AnyFormula, value_of: ValueOf) -> float | Rejected:
    """The formula's value from those of its terms and columns, which `value_of` gives."""
    tree = replace(formula, sign=1) if isinstance(formula, Formula) else formula.tree
    found = _combined(tree, value_of)
    return found if isinstance(found, Rejected) else formula.sign * found


def _combined(tree: ScoreTree, value_of: ValueOf) -> float | Rejected:
    if isinstance(tree, Formula | Column):
        return value_of(tree)
    if isinstance(tree, Transform):
        inside = _combined(tree.operand, value_of)
        return inside if isinstance(inside, Rejected) else _transform(tree.operation, inside)
    values: list[float] = []
    for operand in tree.operands:
        value = _combined(operand, value_of)
        if isinstance(value, Rejected):
            return value
        values.append(value)
    return _join(tree.operation, values)


@dataclass(frozen=True, slots=True)
class _Reader:
    """The values of one architecture: its network's terms and its columns."""

    network: NetworkValues
    columns: Mapping[str, float]

    def value(self, leaf: Formula | Column) -> float | Rejected:
        """The value of a term or a column."""
        return self.term(leaf) if isinstance(leaf, Formula) else self._column(leaf.name)

    def term(self, formula: Formula) -> float | Rejected:
        """The reduced value of one term, without its sign."""
        positions = self.network.read(formula.reduction)
        if positions is None:
            return Rejected("missing-end", f"the network has no {formula.reduction} to read")
        values = block_values(formula, positions)
        if isinstance(values, Rejected):
            return values
        try:
            total = formula.positions.combine(values, len(self.network.blocks))
        except OverflowError:  # of a partial sum
            return OVERFLOW
        return _finite_or_rejected(total)

    def _column(self, name: str) -> float | Rejected:
        if name not in self.columns:
            have = ", ".join(sorted(self.columns)) or "none"
            raise TensorError(f"the architecture has no column {name!r}; it has: {have}")
        return _finite_or_rejected(float(self.columns[name]))


def _transform(operation: str, x: float) -> float | Rejected:
    """An outer operation on one number, without guards: undefined is rejected."""
    if operation == "abs":
        return abs(x)
    if operation == "square":
        return _finite_or_rejected(x * x)
    if operation == SIGNED_LOG:
        return math.copysign(math.log1p(abs(x)), x)
    if x < 0 if operation == "sqrt" else x <= 0 if operation == "log" else x == 0:
        return _UNDEFINED
    if operation == "inverse":
        return _finite_or_rejected(1.0 / x)
    return math.sqrt(x) if operation == "sqrt" else math.log(x)


def _join(operation: str, values: Sequence[float]) -> float | Rejected:
    if operation == "mul":
        return _finite_or_rejected(math.prod(values))
    return _finite_or_rejected(values[0] - values[1] if operation == "sub" else sum(values))


def _finite_or_rejected(value: float) -> float | Rejected:
    return value if math.isfinite(value) else OVERFLOW
