"""The outer operations: plain mathematics on one number per network, each declared once.

An outer operation has no guard: where it is not defined (the root or logarithm of a negative, one
over zero) there is no score. Those that are powers declare their exponent; a formula merges them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from primitives.errors import DeclarationError, look_up
from primitives.properties import (
    NON_NEGATIVE,
    NON_POSITIVE,
    REALS,
    Blind,
    Interval,
    announce_change,
)

Body = Callable[[Any, Any], Any]
JOINS = ("mul", "add", "sub")
OUTER: dict[str, OuterOperation] = {}


@dataclass(frozen=True, slots=True)
class OuterOperation:
    """What is declared of an outer operation.

    body: its value on a number or array x, with the functions of xp; sympy: its form of (x, sympy);
    image: the range of its results where it is defined; latex: a template of {x};
    exponent: of the power that it is, which then needs no template; blind: what of x does not
    matter; jumps_at_zero: near zero the sign of x decides; fixes: where f(x) = x;
    undoes: the operations that it takes back; increases: it keeps the order where it is defined;
    is_odd: f(-x) = -f(x).
    """

    name: str
    meaning: str
    body: Body
    sympy: Body
    image: Callable[[Interval], Interval]
    latex: str | None = None
    exponent: Fraction | None = None
    blind: Blind | None = None
    jumps_at_zero: bool = False
    fixes: Interval | None = None
    undoes: tuple[str, ...] = ()
    increases: bool = False
    is_odd: bool = False


class _Numbers:
    """What a body may call for one float: of NumPy, and of `math`, which raises errors."""

    abs, sqrt, log, log1p, tanh = math.fabs, math.sqrt, math.log, math.log1p, math.tanh

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


NUMBERS = _Numbers()


def outer(
    *, sympy: Body, image: Callable[[Interval], Interval], **facts: Any
) -> Callable[[Body], OuterOperation]:
    """Declare an outer operation: the decorated body of (x, xp) becomes an `OuterOperation`."""

    def declare(body: Body) -> OuterOperation:
        name = body.__name__
        meaning = (body.__doc__ or "").strip()
        operation = OuterOperation(name, meaning, body, sympy, image, **facts)
        if name in OUTER or name in JOINS:
            raise DeclarationError(f"the name {name!r} is taken; rename the function")
        if (operation.exponent is None) == (operation.latex is None):
            raise DeclarationError(f"{name} needs an exponent or a LaTeX template, not both")
        if operation.exponent is not None and not is_dyadic(operation.exponent):
            raise DeclarationError(f"{name} has exponent {operation.exponent}; use halves of it")
        OUTER[name] = operation
        announce_change()
        return operation

    return declare


def is_dyadic(exponent: Fraction) -> bool:
    """Whether squares and square roots make the power."""
    return exponent.denominator & (exponent.denominator - 1) == 0


def forget_outer(name: str) -> None:
    """Remove an outer operation: for tests and notebooks that declare and redeclare."""
    del OUTER[name]
    announce_change()


def get_outer(name: str) -> OuterOperation:
    """The outer operation of that name; raises UnknownPrimitiveError with a hint otherwise."""
    return look_up("operation on terms called", name, OUTER)


def _squares(inside: Interval) -> Interval:
    sizes = inside.magnitudes()
    return Interval(sizes.low * sizes.low, sizes.high * sizes.high)


def _reciprocals(inside: Interval) -> Interval:
    if inside in (NON_NEGATIVE, NON_POSITIVE):
        return inside
    if inside in NON_NEGATIVE:
        return Interval(_one_over(inside.high), _one_over(inside.low))
    if inside in NON_POSITIVE:
        return Interval(-_one_over(-inside.low), -_one_over(-inside.high))
    return REALS


def _one_over(size: float) -> float:
    return math.inf if size == 0 else 1.0 / size


def _roots(inside: Interval) -> Interval:
    seen = inside.positive_part()
    return Interval(math.sqrt(seen.low), math.sqrt(seen.high))


def _logarithms(inside: Interval) -> Interval:
    seen = inside.positive_part()
    low, high = (math.log(end) if end > 0 else -math.inf for end in (seen.low, seen.high))
    return Interval(low, high)


def _signed_logarithms(inside: Interval) -> Interval:
    low, high = (math.copysign(math.log1p(math.fabs(x)), x) for x in (inside.low, inside.high))
    return Interval(low, high)


@outer(sympy=lambda x, s: s.sqrt(x), image=_roots, exponent=Fraction(1, 2), blind=Blind.NEGATIVE,
       undoes=("square",))  # fmt: skip
def sqrt(x: Any, xp: Any) -> Any:
    """the square root"""
    return xp.sqrt(x)


@outer(sympy=lambda x, s: x**2, image=_squares, exponent=Fraction(2), blind=Blind.SIGN,
       undoes=("sqrt",))  # fmt: skip
def square(x: Any, xp: Any) -> Any:
    """the square"""
    return x * x


@outer(sympy=lambda x, s: 1 / x, image=_reciprocals, exponent=Fraction(-1), jumps_at_zero=True,
       undoes=("inverse",))  # fmt: skip
def inverse(x: Any, xp: Any) -> Any:
    """one over it"""
    return 1.0 / x


@outer(sympy=lambda x, s: s.Abs(x), image=Interval.magnitudes, latex=r"\left| {x} \right|",
       blind=Blind.SIGN, fixes=NON_NEGATIVE)  # fmt: skip
def abs(x: Any, xp: Any) -> Any:  # shadows the built-in function in this module
    """its magnitude"""
    return xp.abs(x)


@outer(sympy=lambda x, s: s.log(x), image=_logarithms, latex=r"\log\left( {x} \right)",
       blind=Blind.NEGATIVE, jumps_at_zero=True, increases=True)  # fmt: skip
def log(x: Any, xp: Any) -> Any:
    """the logarithm"""
    return xp.log(x)


@outer(sympy=lambda x, s: s.sign(x) * s.log(1 + s.Abs(x)), image=_signed_logarithms,
       increases=True, is_odd=True, latex=r"\operatorname{sgn}\left( {x} \right)"
       r" \cdot \log\left( 1 + \left| {x} \right| \right)")  # fmt: skip
def signed_log(x: Any, xp: Any) -> Any:
    """sgn(x) log(1 + |x|), for numbers that may change sign"""
    return xp.sign(x) * xp.log1p(xp.abs(x))


@outer(sympy=lambda x, s: s.tanh(x), increases=True, is_odd=True,
       image=lambda inside: Interval(math.tanh(inside.low), math.tanh(inside.high)),
       latex=r"\tanh\left( {x} \right)")  # fmt: skip
def tanh(x: Any, xp: Any) -> Any:
    """the hyperbolic tangent, which saturates at -1 and 1"""
    return xp.tanh(x)


@outer(sympy=lambda x, s: (x + s.Abs(x)) / 2, image=Interval.positive_part, fixes=NON_NEGATIVE,
       latex=r"\left[ {x} \right]_{+}")  # fmt: skip
def relu(x: Any, xp: Any) -> Any:
    """x where it is above 0, else 0"""
    return (x + xp.abs(x)) / 2
