"""Every epsilon of the project, and the protected functions that need one.

Formulas are evaluated on tensors over the whole float range. Each guard below defines a function
outside its usual domain; NumPy, torch, sympy and LaTeX all use the same definition.
"""

from __future__ import annotations

import math
from typing import Any

EXP_LIMIT = 50.0  # exp clips its argument here: e^50 = 5e21 may still be squared in float64
INVERSE_FLOOR = 1e-9  # |x| is at least this before 1/x
SPREAD_FLOOR = 1e-12  # a spread below this part of max|x| is rounding noise: taken as zero
SOFTMAX_REACH = 700.0  # e^-745 underflows: beyond this width log(softmax) reaches a zero


def exponential(x: Any, xp: Any) -> Any:
    """e^x with x clipped to ±EXP_LIMIT."""
    return xp.exp(xp.clip(x, -EXP_LIMIT, EXP_LIMIT))


def logarithm(x: Any, xp: Any) -> Any:
    """log x, and 0 where x <= 0."""
    return xp.log(xp.where(x > 0, x, 1.0))


def reciprocal(x: Any, xp: Any) -> Any:
    """1/x with |x| floored; zero counts as positive, whatever its sign bit says."""
    size = xp.clip(xp.abs(x), INVERSE_FLOOR, None)
    return 1.0 / xp.where(x < 0, -size, size)


def positive_part(x: Any, xp: Any) -> Any:
    """max(x, 0), never a negative zero."""
    return xp.where(x > 0, x, 0.0)


def spread_or(x: Any, spread: Any, xp: Any, otherwise: float) -> Any:
    """The spread, or `otherwise` where it is only rounding noise."""
    return xp.where(spread > SPREAD_FLOOR * xp.amax(xp.abs(x)), spread, otherwise)


def deviation(x: Any, xp: Any) -> Any:
    """Population standard deviation before its guard."""
    centred = x - xp.mean(x)
    return xp.sqrt(xp.mean(centred * centred))


NOT_SPREAD = math.inf  # dividing by it turns a noise spread into zeros
