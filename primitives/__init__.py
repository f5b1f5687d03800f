"""The language of proxies: primitives, formulas, their evaluation and their pruning.

Importing this package loads NumPy only; sympy, LaTeX and DEAP live in modules of their own
(`primitives.symbolic`, `primitives.latex`, `primitives.deap_set`).
"""

from primitives import operations as _operations  # noqa: F401  declares the primitives
from primitives.errors import (
    DeclarationError,
    FormulaError,
    PrimitiveError,
    Rejected,
    TensorError,
    UnknownPrimitiveError,
)
from primitives.expressions import Apply, Combine, Expression, Leaf, branch
from primitives.formula import Column, Constant, Formula, Power, Term
from primitives.naive import score
from primitives.parser import parse
from primitives.registry import BINARIES, UNARIES
from primitives.statistics import SIZES, STATISTICS
from primitives.tensors import Matrix, NetworkValues, cut, kept_columns, whole

__all__ = [
    "BINARIES",
    "SIZES",
    "STATISTICS",
    "UNARIES",
    "Apply",
    "Column",
    "Combine",
    "Constant",
    "DeclarationError",
    "Expression",
    "Formula",
    "FormulaError",
    "Leaf",
    "Matrix",
    "NetworkValues",
    "Power",
    "PrimitiveError",
    "Rejected",
    "TensorError",
    "Term",
    "UnknownPrimitiveError",
    "branch",
    "cut",
    "kept_columns",
    "parse",
    "score",
    "whole",
]
