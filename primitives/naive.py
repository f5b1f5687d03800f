"""Score a formula on tensors, one operation after another: the reference for anything faster.

Terms are computed block by block, reduced over positions, and put together by the operations
above them. A block maps each statistic to its list of matrices, and each size to one 1 x 1 matrix
(`primitives.network.number`). They meet so: aligned statistics tensor by tensor, a scalar with
anything by broadcasting, everything else after both sides were reduced to their mean over the
block's tensors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from primitives.block_sizes import SIZES
from primitives.errors import TensorError
from primitives.expressions import Apply, Expression, Leaf, drop_dead
from primitives.formula import Atom, Formula, Term, fold
from primitives.network import Block, NetworkValues, as_network
from primitives.outer import NUMBERS, OUTER
from primitives.properties import Gives
from primitives.registry import Binary, get_binary, get_unary
from primitives.rejection import NON_FINITE, Rejected
from primitives.statistics import get_statistic
from primitives.tensors import Array, Matrix, kept_columns, namespace

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
        return _finite_or_rejected(float(OUTER[operation].body(x, NUMBERS)))
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


OVERFLOW = Rejected(NON_FINITE, "an operation left the range of float64 on these tensors")
_NOTHING = Rejected("both-disconnected", "every branch is disconnected: nothing is left to score")


@dataclass(frozen=True, slots=True)
class Tensors:
    """A value per tensor of the block; group None is one scalar for the whole block."""

    items: tuple[Matrix, ...]
    is_scalar: bool
    group: str | None


class _NonFiniteError(Exception):
    """An intermediate result overflowed."""


def block_values(expression: Expression, blocks: Sequence[Block]) -> list[float] | Rejected:
    """The expression's value on each block: the mean over its tensors."""
    if not blocks:
        raise TensorError("no blocks were given; an architecture has at least one")
    alive = drop_dead(expression)
    if alive is None:
        return _NOTHING
    try:
        with np.errstate(all="ignore"):  # overflow is answered below, not warned about
            return [float(_mean(evaluate(alive, b))) for b in blocks]
    except (_NonFiniteError, OverflowError):
        return OVERFLOW


def evaluate(expression: Expression, block: Block) -> Tensors:
    """The expression's value for each tensor of one block (no disconnected branches)."""
    if isinstance(expression, Leaf):
        return _leaf(expression, block)
    if isinstance(expression, Apply):
        return _apply(expression.operation, evaluate(expression.operand, block))
    left = evaluate(expression.left, block)
    right = evaluate(expression.right, block)
    return _combine(get_binary(expression.operation), left, right)


def _leaf(leaf: Leaf, block: Block) -> Tensors:
    matrices = tuple(block.get(leaf.name, ()))
    if not matrices:
        have = ", ".join(sorted(block)) or "none"
        kind = "size" if leaf.is_size else "tensor of statistic"
        raise TensorError(f"the block has no {kind} {leaf.name!r}; it has: {have}")
    if not leaf.is_size:
        return Tensors(matrices, False, get_statistic(leaf.name).group)
    if [matrix.true_shape for matrix in matrices] != [(1, 1)] or (
        float(matrices[0].values[0, 0]) < SIZES[leaf.name].range.low
    ):
        raise TensorError(f"the size {leaf.name!r} is not one number of at least 1")
    return Tensors(matrices, True, None)


def _apply(operation: str, value: Tensors) -> Tensors:
    primitive = get_unary(operation)
    reduces = primitive.traits.gives is Gives.SCALAR
    items = []
    for matrix in value.items:
        result = primitive(matrix.values, matrix.column_scale)
        items.append(_scalar(result) if reduces else Matrix(_finite(result), matrix.true_columns))
    return Tensors(tuple(items), value.is_scalar or reduces, value.group)


def _combine(primitive: Binary, left: Tensors, right: Tensors) -> Tensors:
    if left.group is not None and right.group is not None:
        if left.group != right.group:
            left, right = _reduced(left), _reduced(right)
        elif len(left.items) != len(right.items):
            raise TensorError(
                f"{primitive.name}: {len(left.items)} tensors meet {len(right.items)} in one"
                " block; aligned statistics have one to one tensors"
            )
    count = max(len(left.items), len(right.items))
    pairs = zip(_spread(left, count), _spread(right, count), strict=True)
    is_scalar = left.is_scalar, right.is_scalar
    items = tuple(_meet(primitive, a, b, any(is_scalar)) for a, b in pairs)
    return Tensors(items, all(is_scalar), left.group or right.group)


def _meet(primitive: Binary, a: Matrix, b: Matrix, scalar_involved: bool) -> Matrix:
    """One pair of matrices, at least one of them a scalar if `scalar_involved`."""
    if scalar_involved:
        wide = a if a.true_columns >= b.true_columns else b
        xp = namespace(a.values)
        plain = (
            a.values * b.values if primitive.contracts else primitive.body(a.values, b.values, xp)
        )
        return Matrix(_finite(plain), wide.true_columns)
    if primitive.contracts:
        return _contract(primitive, a, b)
    if a.true_shape != b.true_shape or a.kept != b.kept:
        return _meet(primitive, _scalar(_average(a)), _scalar(_average(b)), True)
    return Matrix(_finite(primitive.body(a.values, b.values, namespace(a.values))), a.true_columns)


def _contract(primitive: Binary, a: Matrix, b: Matrix) -> Matrix:
    """a·b if the true inner sizes agree, a·bᵀ if the true widths do, else the product of means."""
    xp = namespace(a.values)
    if a.true_columns == b.rows:
        rows = b.values if a.kept == b.rows else b.values[kept_columns(a.true_columns, a.kept)]
        product = xp.matmul(a.values, rows) * a.column_scale
        return Matrix(_finite(product), b.true_columns)
    if a.true_columns == b.true_columns and a.kept == b.kept:
        product = xp.matmul(a.values, b.values.T) * a.column_scale
        return Matrix(_finite(product), b.rows)
    return _meet(primitive, _scalar(_average(a)), _scalar(_average(b)), True)


def _spread(value: Tensors, count: int) -> tuple[Matrix, ...]:
    return value.items * count if value.group is None else value.items


def _reduced(value: Tensors) -> Tensors:
    """The block's one scalar: the mean over tensors, counting equally, of each tensor's mean."""
    return Tensors((_scalar(_mean(value)),), True, None)


def _mean(value: Tensors) -> Array:
    means = [_average(matrix) for matrix in value.items]
    return sum(means[1:], start=means[0]) / len(means)


def _average(matrix: Matrix) -> Array:
    return namespace(matrix.values).mean(matrix.values)


def _scalar(value: Array) -> Matrix:
    return Matrix(_finite(value).reshape(1, 1), 1)


def _finite(values: Array) -> Array:
    if not bool(namespace(values).isfinite(values).all()):
        raise _NonFiniteError
    return values
