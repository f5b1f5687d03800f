"""Score a formula on tensors, one operation after another: the reference for anything faster.

Terms are computed block by block (`primitives.block_values`), reduced over positions, and put
together by the operations above them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from primitives.block_values import OVERFLOW, Tensors, block_values, evaluate
from primitives.errors import TensorError
from primitives.formula import Atom, Formula, Term, fold
from primitives.network import Block, NetworkValues, as_network
from primitives.outer import OUTER, Numbers
from primitives.rejection import NON_FINITE, Rejected

__all__ = [
    "Block",
    "NetworkValues",
    "Tensors",
    "block_values",
    "combine",
    "evaluate",
    "score",
]

ValueOf = Callable[[Atom], float | Rejected]

_UNDEFINED = Rejected(
    NON_FINITE, "an operation on terms is not defined here: a root or logarithm of a negative, 1/0"
)


def score(
    formula: Formula,
    network: NetworkValues | Sequence[Block],
    columns: Mapping[str, float] | None = None,
) -> float | Rejected:
    """The formula's value for one architecture, or why it has none.

    Any intermediate result that leaves float64 rejects the formula: a later sigmoid or relu would
    otherwise turn the overflow into a harmless-looking number.
    """
    reader = _Reader(as_network(network), columns or {})
    return combine(formula, reader.value)


def combine(formula: Formula, value_of: ValueOf) -> float | Rejected:
    """The formula's value from those of its terms and columns, which `value_of` gives."""
    value = fold(formula, value_of, _applied, _joined)
    return value if isinstance(value, Rejected) else formula.sign * value


def _applied(operation: str, x: float | Rejected) -> float | Rejected:
    """An outer operation on one number, without guards: undefined is rejected."""
    if isinstance(x, Rejected):
        return x
    try:
        return _finite_or_rejected(OUTER[operation].body(x, Numbers))
    except (ValueError, ZeroDivisionError):
        return _UNDEFINED


def _joined(operation: str, values: Sequence[float | Rejected]) -> float | Rejected:
    numbers: list[float] = []
    for value in values:
        if isinstance(value, Rejected):
            return value
        numbers.append(value)
    if operation == "mul":
        return _finite_or_rejected(math.prod(numbers))
    return _finite_or_rejected(numbers[0] - numbers[1] if operation == "sub" else sum(numbers))


@dataclass(frozen=True, slots=True)
class _Reader:
    """The values of one architecture: its network's terms and its columns."""

    network: NetworkValues
    columns: Mapping[str, float]

    def value(self, atom: Atom) -> float | Rejected:
        """The value of a term or a column."""
        return self._term(atom) if isinstance(atom, Term) else self._column(atom.name)

    def _term(self, term: Term) -> float | Rejected:
        positions = self.network.read(term.reduction)
        if positions is None:
            return Rejected("missing-end", f"the network has no {term.reduction} to read")
        values = block_values(term.expression, positions)
        if isinstance(values, Rejected):
            return values
        try:
            total = term.positions.combine(values, len(self.network.blocks))
        except OverflowError:  # of a partial sum
            return OVERFLOW
        return _finite_or_rejected(total)

    def _column(self, name: str) -> float | Rejected:
        if name not in self.columns:
            have = ", ".join(sorted(self.columns)) or "none"
            raise TensorError(f"the architecture has no column {name!r}; it has: {have}")
        return _finite_or_rejected(float(self.columns[name]))


def _finite_or_rejected(value: float) -> float | Rejected:
    return value if math.isfinite(value) else OVERFLOW
