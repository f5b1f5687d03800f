"""The range of one number per network, from what is declared of its parts.

Of a column nothing is known but what the caller says: the names in `positive` are above zero.
"""

from __future__ import annotations

import math
from functools import lru_cache

from primitives.changes import on_change
from primitives.expressions import Apply, Combine, Expression, drop_dead
from primitives.facts import facts
from primitives.formula import Atom, Base, Column, Formula, Term, fold, fold_base
from primitives.outer import OUTER
from primitives.properties import NON_NEGATIVE, NON_POSITIVE, REALS, Interval
from primitives.registry import get_unary

Names = frozenset[str]
NO_NAMES: Names = frozenset()


def range_of(formula: Formula, positive: Names = NO_NAMES) -> Interval:
    """The range of the formula's values without its sign, where it is defined."""
    return fold(formula, lambda atom: _of_atom(atom, positive), _applied, _joined_all)


def range_of_base(base: Base, positive: Names = NO_NAMES) -> Interval:
    """The range of a base's values where it is defined."""
    return fold_base(base, lambda atom: _of_atom(atom, positive), _applied, _joined_all)


def keeps_sign(interval: Interval) -> bool:
    """True if no two numbers in the interval have opposite signs."""
    return interval in NON_NEGATIVE or interval in NON_POSITIVE


@lru_cache(maxsize=65536)
def _of_term(term: Term) -> Interval:
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


def _of_atom(atom: Atom, positive: Names) -> Interval:
    if isinstance(atom, Column):
        return NON_NEGATIVE if atom.name in positive else REALS
    return _of_term(atom)


def _applied(operation: str, inside: Interval) -> Interval:
    return OUTER[operation].image(inside)


def _joined_all(operation: str, intervals: list[Interval]) -> Interval:
    first, *rest = intervals
    for other in rest:
        first = _joined(operation, first, other)
    return first


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
