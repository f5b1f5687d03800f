"""The range of one number per network, from what is declared of its parts.

Of a column nothing is known but what the caller says: the names in `positive` are above zero.
"""

from __future__ import annotations

import math
from functools import lru_cache

from primitives.changes import on_change
from primitives.expressions import Apply, Combine, Expression, drop_dead
from primitives.facts import facts
from primitives.formula import Formula
from primitives.properties import NON_NEGATIVE, NON_POSITIVE, REALS, Interval
from primitives.registry import get_unary
from primitives.score import SIGNED_LOG, Column, ScoreTree, Transform

Names = frozenset[str]
NO_NAMES: Names = frozenset()


def range_of(tree: ScoreTree, positive: Names = NO_NAMES) -> Interval:
    """The range of the tree's values where it is defined."""
    if isinstance(tree, Formula):
        return _of_term(tree)
    if isinstance(tree, Column):
        return NON_NEGATIVE if tree.name in positive else REALS
    if isinstance(tree, Transform):
        return _transformed(tree.operation, range_of(tree.operand, positive))
    first, *rest = (range_of(operand, positive) for operand in tree.operands)
    for other in rest:
        first = _joined(tree.operation, first, other)
    return first


def keeps_sign(interval: Interval) -> bool:
    """True if no two numbers in the interval have opposite signs."""
    return interval in NON_NEGATIVE or interval in NON_POSITIVE


@lru_cache(maxsize=65536)
def _of_term(term: Formula) -> Interval:
    alive = drop_dead(term.expression)
    return REALS if alive is None else term.positions.image(_of_mean(alive))


on_change(_of_term.cache_clear)


def _of_mean(expression: Expression) -> Interval:
    """The range of the expression's mean over a block: that of its elements, or less."""
    known = facts(expression).interval
    if isinstance(expression, Combine) and expression.operation in ("add", "sub"):
        left, right = _of_mean(expression.left), _of_mean(expression.right)
        return known & _joined(expression.operation, left, right)
    if isinstance(expression, Apply):
        if get_unary(expression.operation).of_scalar == "identity":
            return known & _of_mean(expression.operand)
        if expression.operation == "neg":
            below = _of_mean(expression.operand)
            return known & Interval(-below.high, -below.low)
    return known


def _transformed(operation: str, inside: Interval) -> Interval:
    """The range of an outer operation where it is defined; its domain is not checked here."""
    if operation == "abs":
        return inside.magnitudes()
    if operation == "square":
        sizes = inside.magnitudes()
        return Interval(sizes.low * sizes.low, sizes.high * sizes.high)
    if operation == "inverse":
        return inside if inside in (NON_NEGATIVE, NON_POSITIVE) else _reciprocals(inside)
    if operation == SIGNED_LOG:
        low, high = (math.copysign(math.log1p(abs(x)), x) for x in (inside.low, inside.high))
        return Interval(low, high)
    seen = inside.positive_part()
    if operation == "sqrt":
        return Interval(math.sqrt(seen.low), math.sqrt(seen.high))
    low, high = (math.log(end) if end > 0 else -math.inf for end in (seen.low, seen.high))
    return Interval(low, high)


def _reciprocals(inside: Interval) -> Interval:
    if inside in NON_NEGATIVE:
        return Interval(_one_over(inside.high), _one_over(inside.low))
    if inside in NON_POSITIVE:
        return Interval(-_one_over(-inside.low), -_one_over(-inside.high))
    return REALS


def _one_over(size: float) -> float:
    return math.inf if size == 0 else 1.0 / size


def _joined(operation: str, left: Interval, right: Interval) -> Interval:
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
