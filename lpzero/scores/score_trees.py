"""The operations above the terms of a formula, on one number per architecture.

They have no guards: where one is not defined for an architecture (a root or logarithm of a
negative, one over zero) the score does not exist, as in `primitives.naive`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.scores.stacks import finite
from primitives.formula import Atom, Formula, fold
from primitives.outer import OUTER


def formula_values(formula: Formula, value_of: Callable[[Atom], FloatArray]) -> FloatArray:
    """The formula's values (A,) without its sign, from those of its terms and columns.

    Raises NonFiniteError where an operation is not defined.
    """
    return fold(formula, value_of, _applied, _joined)


def _applied(operation: str, values: FloatArray) -> FloatArray:
    return finite(OUTER[operation].body(values, np))


def _joined(operation: str, operands: Sequence[FloatArray]) -> FloatArray:
    total = operands[0]
    for values in operands[1:]:
        if operation == "sub":
            total = total - values
        else:
            total = total * values if operation == "mul" else total + values
    return finite(total)
