"""What is known of an expression or formula before any tensor is seen, and how two branches meet.

Derived from the declared properties alone: kind, range of the elements, alignment group, exact
zeros, and reductions whose result only the shape decides. Of a column nothing is known but what the
caller says: the names in `positive` are above zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache, partial, reduce

import numpy as np

from primitives.expressions import Apply, Combine, Expression, Leaf, drop_dead, walk
from primitives.formula import (
    AtomOrConstant,
    Base,
    Column,
    Constant,
    Formula,
    Term,
    fold,
    fold_base,
)
from primitives.outer import OUTER
from primitives.properties import (
    NON_NEGATIVE,
    NON_POSITIVE,
    REALS,
    Blind,
    Gives,
    Interval,
    Kind,
    on_change,
)
from primitives.registry import Binary, Unary, get_binary, get_unary
from primitives.statistics import SIZES, get_statistic

_TINY = 5e-324


@dataclass(frozen=True, slots=True)
class Facts:
    """`group` None: one scalar per block. `steady`: reduction -> value (None: set by the shape)."""

    kind: Kind
    interval: Interval
    group: str | None
    has_zeros: bool = False
    steady: tuple[tuple[str, float | None], ...] = ()


@lru_cache(maxsize=65536)
def facts(expression: Expression) -> Facts:
    """The facts of an expression without disconnected branches."""
    if isinstance(expression, Leaf):
        if expression.is_size:
            return Facts(Kind.SCALAR, SIZES[expression.name].range, None)
        declared = get_statistic(expression.name)
        return Facts(Kind.MATRIX, declared.range, declared.group)
    if isinstance(expression, Apply):
        return _of_unary(get_unary(expression.operation), facts(expression.operand))
    return _of_binary(expression)


on_change(facts.cache_clear)


class Meeting(Enum):
    """What a binary operation gets of the two branches below it, in each block."""

    MEANS = "means"  # tensors that do not correspond: of each branch its mean over the block
    SCALAR = "scalar"  # a scalar and anything, by broadcasting; a matrix product is a plain one
    ELEMENTS = "elements"  # tensor by tensor if they `have_same_shape`, else the tensors' means
    PRODUCT = "product"  # tensor by tensor the `right_factor`, else the product of the means


def meeting(left: Facts, right: Facts, primitive: Binary) -> Meeting:
    """How two branches meet; `primitives.tensors` tells whether the shapes of two tensors fit."""
    if None not in (left.group, right.group) and left.group != right.group:
        return Meeting.MEANS
    if Kind.SCALAR in (left.kind, right.kind):
        return Meeting.SCALAR
    return Meeting.PRODUCT if primitive.contracts else Meeting.ELEMENTS


def shapes_may_differ(expression: Combine) -> bool:
    """Whether a matrix product inside may leave matrices that meet with different shapes."""
    inside = (node for node in walk(expression) if isinstance(node, Combine))
    return any(get_binary(node.operation).contracts for node in inside)


def _of_unary(primitive: Unary, operand: Facts) -> Facts:
    traits = primitive.traits
    kind = Kind.SCALAR if traits.gives is Gives.SCALAR else operand.kind
    interval = image(primitive, operand)
    if traits.gives is Gives.SAME:
        zeros = _keeps_or_makes_zeros(primitive, operand)
        return Facts(kind, interval, operand.group, zeros, _steady_after(primitive, operand))
    return Facts(kind, interval, operand.group, traits.always_has_zero, traits.steady)


def image(primitive: Unary, operand: Facts) -> Interval:
    """The range of the primitive's results on that operand."""
    traits = primitive.traits
    if operand.kind is Kind.SCALAR and not isinstance(primitive.of_scalar, str):
        return Interval(primitive.of_scalar, primitive.of_scalar)
    if traits.gives is Gives.MATRIX:
        return traits.range
    if traits.gives is Gives.SCALAR:
        # An average lies among its elements; of other reductions only the declared range is known.
        return operand.interval if primitive.of_scalar == "identity" else traits.range
    seen = seen_part(primitive, operand.interval)
    if seen.is_point and abs(seen.low) != np.inf:
        value = _at(primitive, seen.low)
        return Interval(value, value)
    if traits.monotone is None or (traits.jumps_at_zero and seen.low < 0 <= seen.high):
        return traits.range
    ends = [_at(primitive, seen.low), _at(primitive, seen.high)]
    if traits.jumps_at_zero and seen.low == 0:
        ends.append(_at(primitive, _TINY))
    return Interval(min(ends), max(ends)) & traits.range


def seen_part(primitive: Unary, interval: Interval) -> Interval:
    """The interval after the part to which the primitive is blind was folded away."""
    if primitive.traits.blind is Blind.SIGN:
        return interval.magnitudes()
    if primitive.traits.blind is Blind.NEGATIVE:
        return interval.positive_part()
    return interval


def _keeps_or_makes_zeros(primitive: Unary, operand: Facts) -> bool:
    """Exact zeros come from cutting negatives away, and survive any f with f(0) = 0."""
    maps_zero_to_zero = _at(primitive, 0.0) == 0.0
    cuts_negatives = primitive.traits.blind is Blind.NEGATIVE and operand.interval.low < 0
    return maps_zero_to_zero and (operand.has_zeros or cuts_negatives)


def _steady_after(primitive: Unary, operand: Facts) -> tuple[tuple[str, float | None], ...]:
    """Means that stay fixed through an element-wise operation: those of a squared z-score."""
    steady = dict(operand.steady)
    if primitive.name not in steady:
        return ()
    value = steady[primitive.name]
    return (("mean", value), ("norm_sum", value), ("l1", None))


def _of_binary(expression: Combine) -> Facts:
    left, right = facts(expression.left), facts(expression.right)
    primitive = get_binary(expression.operation)
    are_means = meeting(left, right, primitive) is Meeting.MEANS
    are_scalars = left.kind is right.kind is Kind.SCALAR
    kind = Kind.SCALAR if are_means or are_scalars else Kind.MATRIX
    group = None if are_means else left.group or right.group
    if expression.operation == "sub" and expression.left == expression.right:
        return Facts(kind, Interval(0.0, 0.0), group)
    if primitive.is_linear or min(left.interval.low, right.interval.low) < 0:
        return Facts(kind, REALS, group)
    return Facts(kind, Interval(0.0), group)


def _at(primitive: Unary, value: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.asarray(primitive(np.full((1, 1), value))).reshape(()))


class _EveryName:
    """Names that contain every name."""

    def __contains__(self, name: str) -> bool:
        return True


Names = frozenset[str] | _EveryName
NO_NAMES: Names = frozenset()
EVERY_NAME: Names = _EveryName()


def range_of(formula: Formula, positive: Names = NO_NAMES) -> Interval:
    """The range of the formula's values without its sign, where it is defined."""
    return fold(formula, partial(_range_of_atom, positive), _range_after, _joined_ranges)


def range_of_base(base: Base, positive: Names = NO_NAMES) -> Interval:
    """The range of a base's values where it is defined."""
    return fold_base(base, partial(_range_of_atom, positive), _range_after, _joined_ranges)


def keeps_sign(interval: Interval) -> bool:
    """True if no two numbers in the interval have opposite signs."""
    return interval in NON_NEGATIVE or interval in NON_POSITIVE


@lru_cache(maxsize=65536)
def _range_of_term(term: Term) -> Interval:
    alive = drop_dead(term.expression)
    return REALS if alive is None else term.positions.image(_range_of_mean(alive))


on_change(_range_of_term.cache_clear)


def _range_of_mean(expression: Expression) -> Interval:
    """The range of the expression's mean over a block: that of its elements, or less."""
    interval = facts(expression).interval
    if isinstance(expression, Combine) and expression.operation in ("add", "sub"):
        left, right = _range_of_mean(expression.left), _range_of_mean(expression.right)
        return interval & _joined_ranges(expression.operation, (left, right))
    if isinstance(expression, Apply):
        if get_unary(expression.operation).of_scalar == "identity":
            return interval & _range_of_mean(expression.operand)
        if expression.operation == "neg":
            below = _range_of_mean(expression.operand)
            return interval & Interval(-below.high, -below.low)
    return interval


def _range_of_atom(positive: Names, atom: AtomOrConstant) -> Interval:
    if isinstance(atom, Constant):
        return Interval(atom.value, atom.value)
    if isinstance(atom, Column):
        return NON_NEGATIVE if atom.name in positive else REALS
    return _range_of_term(atom)


def _range_after(operation: str, inside: Interval) -> Interval:
    return OUTER[operation].image(inside)


def _joined_ranges(operation: str, intervals: Sequence[Interval]) -> Interval:
    return reduce(partial(_range_of_two, operation), intervals)


def _range_of_two(operation: str, left: Interval, right: Interval) -> Interval:
    if operation == "add":
        return Interval(left.low + right.low, left.high + right.high)
    if operation == "sub":
        return Interval(left.low - right.high, left.high - right.low)
    if not (keeps_sign(left) and keeps_sign(right)):
        return REALS
    is_positive = (left in NON_NEGATIVE) == (right in NON_NEGATIVE)
    a, b = left.magnitudes(), right.magnitudes()
    low = a.low * b.low  # zero times infinity is no end: both lows are finite
    high = math.inf if math.inf in (a.high, b.high) else a.high * b.high
    return Interval(low, high) if is_positive else Interval(-high, -low)
