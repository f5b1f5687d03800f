"""The operations above the terms of a score, on one number per architecture.

They have no guards: where one is not defined for an architecture (a root or logarithm of a
negative, one over zero) the score does not exist, as in `primitives.naive`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.scores.stacks import finite
from primitives.formula import Formula
from primitives.score import SIGNED_LOG, Column, ScoreTree, Transform

_TRANSFORMS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "sqrt": np.sqrt,
    "square": np.square,
    "inverse": lambda x: 1.0 / x,
    "abs": np.abs,
    "log": np.log,
    SIGNED_LOG: lambda x: np.sign(x) * np.log1p(np.abs(x)),
}


def tree_values(tree: ScoreTree, leaf: Callable[[Formula | Column], FloatArray]) -> FloatArray:
    """The tree's values (A,), given those of terms and columns; raises NonFiniteError."""
    if isinstance(tree, (Formula, Column)):
        return leaf(tree)
    if isinstance(tree, Transform):
        return finite(_TRANSFORMS[tree.operation](tree_values(tree.operand, leaf)))
    values = [tree_values(operand, leaf) for operand in tree.operands]
    if tree.operation == "sub":
        return finite(values[0] - values[1])
    total = values[0]
    for value in values[1:]:
        total = total * value if tree.operation == "mul" else total + value
    return finite(total)
