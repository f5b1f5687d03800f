"""Score a formula on tensors, one operation after another: the reference for anything faster.

Terms are computed block by block, reduced over positions, and put together by the operations
above them. A block maps each statistic to its list of matrices, and each size to one 1 x 1 matrix
(`primitives.tensors.number`); `primitives.facts.meeting` says how two of them meet.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from primitives.errors import NON_FINITE, Rejected, TensorError
from primitives.expressions import Apply, Combine, Expression, Leaf, drop_dead
from primitives.facts import Meeting, facts, meeting
from primitives.formula import Atom, AtomOrConstant, Constant, Formula, Term, fold
from primitives.outer import NUMBERS, OUTER
from primitives.properties import Gives
from primitives.registry import Binary, Unary, get_binary, get_unary
from primitives.statistics import SIZES
from primitives.tensors import (
    Array,
    Block,
    Matrix,
    NetworkValues,
    as_network,
    have_same_shape,
    namespace,
    right_factor,
)

ValueOf = Callable[[Atom], float | Rejected]
Matrices = tuple[Matrix, ...]  # one per tensor of the block, or a single number for all

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

    def given(atom: AtomOrConstant) -> float | Rejected:
        return atom.value if isinstance(atom, Constant) else value_of(atom)

    value = fold(formula, given, _applied, _joined)
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


def evaluate(expression: Expression, block: Block) -> Matrices:
    """The expression's value for each tensor of one block (no disconnected branches)."""
    if isinstance(expression, Leaf):
        return _leaf(expression, block)
    if isinstance(expression, Apply):
        primitive = get_unary(expression.operation)
        return tuple(_apply(primitive, x) for x in evaluate(expression.operand, block))
    sides = evaluate(expression.left, block), evaluate(expression.right, block)
    return _combine(expression, *sides)


def _leaf(leaf: Leaf, block: Block) -> Matrices:
    matrices = tuple(block.get(leaf.name, ()))
    if not matrices:
        have = ", ".join(sorted(block)) or "none"
        kind = "size" if leaf.is_size else "tensor of statistic"
        raise TensorError(f"the block has no {kind} {leaf.name!r}; it has: {have}")
    if leaf.is_size and (
        [matrix.true_shape for matrix in matrices] != [(1, 1)]
        or float(matrices[0].values[0, 0]) < SIZES[leaf.name].range.low
    ):
        raise TensorError(f"the size {leaf.name!r} is not one number of at least 1")
    return matrices


def _apply(primitive: Unary, matrix: Matrix) -> Matrix:
    result = primitive(matrix.values, matrix.column_scale)
    if primitive.traits.gives is Gives.SCALAR:
        return _scalar(result)
    return Matrix(_finite(result), matrix.true_columns)


def _combine(node: Combine, left: Matrices, right: Matrices) -> Matrices:
    primitive, sides = get_binary(node.operation), (facts(node.left), facts(node.right))
    how = meeting(*sides, primitive)
    if how is Meeting.MEANS:
        left, right = (_scalar(_mean(left)),), (_scalar(_mean(right)),)
    elif None not in (sides[0].group, sides[1].group) and len(left) != len(right):
        raise TensorError(
            f"{primitive.name}: {len(left)} tensors meet {len(right)} in one"
            " block; aligned statistics have one to one tensors"
        )
    n = max(len(left), len(right))  # a side without tensors of its own is one number for all
    pairs = zip(left * (n // len(left)), right * (n // len(right)), strict=True)
    return tuple(_meet(primitive, a, b, how) for a, b in pairs)


def _meet(primitive: Binary, a: Matrix, b: Matrix, how: Meeting) -> Matrix:
    """The operation on one pair of matrices."""
    if how is Meeting.PRODUCT:
        factor = right_factor(a, b)
        if factor is not None:
            product = namespace(a.values).matmul(a.values, factor.values) * a.column_scale
            return Matrix(_finite(product), factor.true_columns)
    if how is Meeting.PRODUCT or (how is Meeting.ELEMENTS and not have_same_shape(a, b)):
        a, b = _scalar(_average(a)), _scalar(_average(b))
    if primitive.contracts:
        values = a.values * b.values
    else:
        values = primitive.body(a.values, b.values, namespace(a.values))
    return Matrix(_finite(values), max(a.true_columns, b.true_columns))


def _mean(matrices: Matrices) -> Array:
    """The mean over tensors, counting equally, of each tensor's mean."""
    means = [_average(matrix) for matrix in matrices]
    return sum(means[1:], start=means[0]) / len(means)


def _average(matrix: Matrix) -> Array:
    return namespace(matrix.values).mean(matrix.values)


def _scalar(value: Array) -> Matrix:
    return Matrix(_finite(value).reshape(1, 1), 1)


def _finite(values: Array) -> Array:
    if not bool(namespace(values).isfinite(values).all()):
        raise _NonFiniteError
    return values
