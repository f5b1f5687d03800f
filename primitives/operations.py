r"""The 21 unary and 4 binary primitives of Table 2 of LPZero, protected where not finite.

Every body is written over `xp`, which is numpy or torch. A unary takes a matrix (rows, columns), a
binary two of fitting shapes or a 1 x 1 scalar and a matrix: `primitives.facts.meeting`.
"""

from __future__ import annotations

import math
from typing import Any

from primitives import guards
from primitives.properties import (
    NON_NEGATIVE,
    NON_POSITIVE,
    REALS,
    UNIT,
    Blind,
    DefinedAs,
    Freedom,
    Gives,
    Interval,
    Monotone,
    Symmetry,
    Undoes,
)
from primitives.registry import binary, unary

_E = math.exp(guards.EXP_LIMIT)
_UP = Monotone.INCREASING
_SHIFTS = frozenset({Freedom.COLUMN_SHIFT})
_AFFINE = frozenset({Freedom.AFFINE})


@unary(
    latex=r"\log\left({x}\right)",
    sympy=lambda x, s: s.Piecewise((s.log(x), x > 0), (0, True)),
    monotone=_UP,
    blind=Blind.NEGATIVE,
    jumps_at_zero=True,
    undoes=(Undoes("exp", exact=Interval(-guards.EXP_LIMIT, guards.EXP_LIMIT)),),
)
def log(x: Any, xp: Any) -> Any:
    """log x, 0 where x <= 0"""
    return guards.logarithm(x, xp)


@unary(
    latex=r"\left|\log\left|{x}\right|\right|",
    sympy=lambda x, s: s.Piecewise((s.Abs(s.log(s.Abs(x))), s.Ne(x, 0)), (0, True)),
    range=NON_NEGATIVE,
    blind=Blind.SIGN,
    symmetry=Symmetry.EVEN,
    defined_as=DefinedAs(("log", "abs"), domain=NON_NEGATIVE),
)
def abslog(x: Any, xp: Any) -> Any:
    """|log |x||, 0 where x = 0"""
    return xp.abs(guards.logarithm(xp.abs(x), xp))


@unary(
    latex=r"\left|{x}\right|",
    sympy=lambda x, s: s.Abs(x),
    range=NON_NEGATIVE,
    monotone=_UP,
    blind=Blind.SIGN,
    symmetry=Symmetry.EVEN,
    fixes=NON_NEGATIVE,
    mirrors=NON_POSITIVE,
)
def abs(x: Any, xp: Any) -> Any:
    """|x|"""
    return xp.abs(x)


@unary(
    latex=r"\left({x}\right)^2",
    sympy=lambda x, s: x**2,
    range=NON_NEGATIVE,
    monotone=_UP,
    blind=Blind.SIGN,
    symmetry=Symmetry.EVEN,
    undoes=(Undoes("sqrt", NON_NEGATIVE, NON_NEGATIVE),),
)
def square(x: Any, xp: Any) -> Any:
    """x^2"""
    return x * x


@unary(
    latex=r"\exp\left({x}\right)",
    sympy=lambda x, s: s.exp(s.Min(s.Max(x, -guards.EXP_LIMIT), guards.EXP_LIMIT)),
    range=Interval(1 / _E, _E),
    monotone=_UP,
    undoes=(Undoes("log", Interval(1 / _E), Interval(1 / _E, _E), of_positive=True),),
)
def exp(x: Any, xp: Any) -> Any:
    """e^x with x clipped to ±50"""
    return guards.exponential(x, xp)


@unary(
    latex=r"\operatorname{zscore}\left({x}\right)",
    sympy=lambda x, s: (x - s.average(x)) / s.spread(x),
    gives=Gives.MATRIX,
    symmetry=Symmetry.ODD,
    makes=Freedom.AFFINE,
    ignores=_AFFINE,
    steady=(("mean", 0.0), ("norm_sum", 0.0), ("std", 1.0), ("fro", None), ("square", 1.0)),
)
def zscore(x: Any, xp: Any) -> Any:
    """(x - mean) / std, 0 where std is only noise"""
    spread = guards.spread_or(x, guards.deviation(x, xp), xp, guards.NOT_SPREAD)
    return (x - xp.mean(x)) / spread


@unary(
    latex=r"\max\left(0, {x}\right)",
    sympy=lambda x, s: s.Max(x, 0),
    range=NON_NEGATIVE,
    monotone=_UP,
    blind=Blind.NEGATIVE,
    fixes=NON_NEGATIVE,
)
def relu(x: Any, xp: Any) -> Any:
    """max(x, 0)"""
    return guards.positive_part(x, xp)


@unary(
    latex=r"\frac{1}{{x}}",
    sympy=lambda x, s: s.Piecewise(
        (1 / x, s.Abs(x) >= guards.INVERSE_FLOOR),
        (-1 / s.Float(guards.INVERSE_FLOOR), x < 0),
        (1 / s.Float(guards.INVERSE_FLOOR), True),
    ),
    range=Interval(-1 / guards.INVERSE_FLOOR, 1 / guards.INVERSE_FLOOR),
    monotone=Monotone.DECREASING,
    symmetry=Symmetry.ODD,
    jumps_at_zero=True,
    undoes=(Undoes("inverse", exact=Interval(guards.INVERSE_FLOOR, 1 / guards.INVERSE_FLOOR)),),
)
def inverse(x: Any, xp: Any) -> Any:
    """1/x with |x| at least 1e-9"""
    return guards.reciprocal(x, xp)


@unary(
    latex=r"\left\| {x} \right\|_F",
    sympy=lambda x, s: s.sqrt(s.total(x**2)),
    gives=Gives.SCALAR,
    range=NON_NEGATIVE,
    blind=Blind.SIGN,
    symmetry=Symmetry.EVEN,
    defined_as=DefinedAs(("square", "l1", "sqrt")),
    grows=0.5,
)
def fro(x: Any, xp: Any) -> Any:
    """sqrt(sum_i x_i^2), rescaled to the true element count"""
    return xp.sqrt(xp.sum(x * x))


@unary(
    latex=r"\frac{1}{n}\sum {x}",
    sympy=lambda x, s: s.average(x),
    gives=Gives.SCALAR,
    monotone=_UP,
    symmetry=Symmetry.ODD,
    defined_as=DefinedAs(("mean",)),
)
def norm_sum(x: Any, xp: Any) -> Any:
    """sum_i x_i / numel(x): the mean by another name"""
    return xp.mean(x)


@unary(
    latex=r"\left\| {x} \right\|_1",
    sympy=lambda x, s: s.total(s.Abs(x)),
    gives=Gives.SCALAR,
    range=NON_NEGATIVE,
    blind=Blind.SIGN,
    symmetry=Symmetry.EVEN,
    grows=1.0,
)
def l1(x: Any, xp: Any) -> Any:
    """sum_i |x_i|, rescaled to the true element count"""
    return xp.sum(xp.abs(x))


@unary(
    latex=r"\eta\left({x}\right)",
    sympy=lambda x, s: s.softmax(x),
    gives=Gives.MATRIX,
    range=UNIT,
    ignores=_SHIFTS,
    steady=(("mean", None), ("norm_sum", None), ("l1", None)),
    defined_as=DefinedAs(("log_softmax", "exp"), exact_width=guards.EXP_LIMIT / 2),
)
def softmax(x: Any, xp: Any) -> Any:
    """e^x / sum e^x of each column, so of whole columns where some were cut"""
    powers = xp.exp(x - xp.amax(x, axis=-2, keepdims=True))
    return powers / xp.sum(powers, axis=-2, keepdims=True)


@unary(
    latex=r"\sigma\left({x}\right)",
    sympy=lambda x, s: 1 / (1 + s.exp(s.Min(s.Max(-x, -guards.EXP_LIMIT), guards.EXP_LIMIT))),
    range=Interval(1 / (1 + _E), 1.0),
    monotone=_UP,
)
def sigmoid(x: Any, xp: Any) -> Any:
    """1 / (1 + e^-x), the logistic function"""
    return 1.0 / (1.0 + guards.exponential(-x, xp))


@unary(
    latex=r"\log\left(\eta\left({x}\right)\right)",
    sympy=lambda x, s: s.log_softmax(x),
    gives=Gives.MATRIX,
    range=NON_POSITIVE,
    makes=Freedom.COLUMN_SHIFT,
    ignores=_SHIFTS,
    defined_as=DefinedAs(("softmax", "log"), exact_width=guards.SOFTMAX_REACH),
)
def log_softmax(x: Any, xp: Any) -> Any:
    """log of softmax, computed without leaving the logarithm"""
    shifted = x - xp.amax(x, axis=-2, keepdims=True)
    return shifted - xp.log(xp.sum(xp.exp(shifted), axis=-2, keepdims=True))


@unary(
    latex=r"\sqrt{{x}}",
    sympy=lambda x, s: s.sqrt(s.Max(x, 0)),
    range=NON_NEGATIVE,
    monotone=_UP,
    blind=Blind.NEGATIVE,
    undoes=(Undoes("square", NON_NEGATIVE, NON_NEGATIVE),),
)
def sqrt(x: Any, xp: Any) -> Any:
    """sqrt(max(x, 0))"""
    return xp.sqrt(guards.positive_part(x, xp))


@unary(
    latex=r"-{x}",
    sympy=lambda x, s: -x,
    monotone=Monotone.DECREASING,
    symmetry=Symmetry.ODD,
    undoes=(Undoes("neg"),),
)
def neg(x: Any, xp: Any) -> Any:
    """-x"""
    return -x


@unary(
    latex=r"\operatorname{minmax}\left({x}\right)",
    sympy=lambda x, s: (x - s.least(x)) / s.reach(x),
    gives=Gives.MATRIX,
    range=UNIT,
    makes=Freedom.AFFINE,
    ignores=_AFFINE,
    always_has_zero=True,
)
def minmax(x: Any, xp: Any) -> Any:
    """(x - min) / (max - min), 0 where the reach is only noise"""
    low = xp.amin(x)
    return (x - low) / guards.spread_or(x, xp.amax(x) - low, xp, guards.NOT_SPREAD)


@unary(
    latex=r"\overline{{x}}",
    sympy=lambda x, s: s.average(x),
    gives=Gives.SCALAR,
    monotone=_UP,
    symmetry=Symmetry.ODD,
)
def mean(x: Any, xp: Any) -> Any:
    """the average element"""
    return xp.mean(x)


@unary(
    latex=r"\operatorname{std}\left({x}\right)",
    sympy=lambda x, s: s.sqrt(s.average((x - s.average(x)) ** 2)),
    gives=Gives.SCALAR,
    range=NON_NEGATIVE,
    symmetry=Symmetry.EVEN,
)
def std(x: Any, xp: Any) -> Any:
    """population standard deviation, 0 where it is only noise"""
    return guards.spread_or(x, guards.deviation(x, xp), xp, 0.0)


@unary(
    latex="{x}",
    sympy=lambda x, s: x,
    monotone=_UP,
    symmetry=Symmetry.ODD,
    fixes=REALS,
)
def identity(x: Any, xp: Any) -> Any:
    """x"""
    return x


@unary(latex=r"\varnothing", gives=Gives.NOTHING)
def disconnect(x: Any, xp: Any) -> Any:
    """removes the branch: the formula becomes one-sided"""
    raise AssertionError("a disconnected branch is removed before anything is computed")


@binary(latex="{x} + {y}", sympy=lambda x, y, s: x + y, commutes=True, is_linear=True)
def add(x: Any, y: Any, xp: Any) -> Any:
    """x + y"""
    return x + y


@binary(latex="{x} - {y}", sympy=lambda x, y, s: x - y, is_linear=True)
def sub(x: Any, y: Any, xp: Any) -> Any:
    """x - y"""
    return x - y


@binary(latex=r"{x} \cdot {y}", sympy=lambda x, y, s: s.contraction(x, y), contracts=True)
def matmul(x: Any, y: Any, xp: Any) -> Any:
    """the matrix product; a plain product where a scalar is involved"""
    is_product_of_matrices = x.shape != (1, 1) and y.shape != (1, 1)
    return xp.matmul(x, y) if is_product_of_matrices else x * y


@binary(latex=r"{x} \odot {y}", sympy=lambda x, y, s: x * y, commutes=True)
def mul(x: Any, y: Any, xp: Any) -> Any:
    """the product element by element"""
    return x * y
