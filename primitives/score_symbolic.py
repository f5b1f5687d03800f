"""Scores as sympy expressions: terms as functions of a block's form, columns as symbols.

A term is `inner(block_mean(...))`: a function that has the reduction's name, of the sympy form that
`primitives.symbolic` gives for a block. Above the terms stands plain mathematics, which sympy may
simplify.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sympy

from primitives.errors import TensorError
from primitives.formula import Formula
from primitives.lambdified import reduce_form
from primitives.network import Block, NetworkValues, as_network
from primitives.reductions import POSITION_REDUCTIONS
from primitives.score import SIGNED_LOG, AnyFormula, Column, ScoreTree, Transform
from primitives.symbolic import outermost, to_sympy

_TRANSFORMS: dict[str, Any] = {
    "sqrt": sympy.sqrt,
    "square": lambda x: x**2,
    "inverse": lambda x: 1 / x,
    "abs": sympy.Abs,
    "log": sympy.log,
    SIGNED_LOG: lambda x: sympy.sign(x) * sympy.log(1 + sympy.Abs(x)),
}


def score_to_sympy(formula: AnyFormula) -> Any:
    """The whole formula as a sympy expression, reductions and sign included.

    >>> from primitives.parser import parse
    >>> score_to_sympy(parse("mul(sqrt(inner(params)), depth)"))
    depth*sqrt(inner(block_mean(params)))
    """
    tree = formula if isinstance(formula, Formula) else formula.tree
    return formula.sign * _symbolic(tree)


def score_sympy(
    form: Any,
    network: NetworkValues | Sequence[Block],
    columns: Mapping[str, float] | None = None,
) -> float:
    """The value of such a form on a network of whole tensors and the architecture's columns."""
    whole, given = as_network(network), columns or {}
    terms = outermost(form, lambda node: str(node.func) in POSITION_REDUCTIONS)
    values = {term: reduce_form(term.args[0], _reduction(term), whole) for term in terms}
    opened = form.xreplace({term: sympy.Float(value, 17) for term, value in values.items()})
    missing = sorted(s.name for s in opened.free_symbols if s.name not in given)
    if missing:
        raise TensorError(f"the architecture has no column {missing[0]!r}")
    numbers = {s: sympy.Float(given[s.name], 17) for s in opened.free_symbols}
    return float(opened.xreplace(numbers))


def _reduction(term: Any) -> Any:
    return str(term.func)


def _symbolic(tree: ScoreTree) -> Any:
    if isinstance(tree, Formula):
        return sympy.Function(tree.reduction, real=True)(to_sympy(tree))
    if isinstance(tree, Column):
        return sympy.Symbol(tree.name, real=True)
    if isinstance(tree, Transform):
        return _TRANSFORMS[tree.operation](_symbolic(tree.operand))
    first, *rest = map(_symbolic, tree.operands)
    if tree.operation == "sub":
        return first - rest[0]
    return sympy.Mul(first, *rest) if tree.operation == "mul" else sympy.Add(first, *rest)
