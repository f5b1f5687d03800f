"""Formulas as sympy expressions, with the protected meaning written out.

A term is `inner(block_mean(...))`: a function that has the reduction's name, of the sympy form of a
block. Above the terms stands plain mathematics, which sympy may simplify.

Element-wise operations become sympy's own; what looks at a whole tensor (total, average, softmax,
the matrix product) becomes a named function of it. `block_mean` marks where tensors are reduced to
one scalar per block; the outermost one is the block's value. The forms describe whole tensors:
a sketch's rescaling is not part of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy

from primitives.block_sizes import SIZES
from primitives.errors import FormulaError
from primitives.expressions import Apply, Combine, Expression, Leaf, drop_dead, walk
from primitives.facts import are_aligned, facts
from primitives.formula import Atom, Column, Formula, Term, fold
from primitives.outer import OUTER
from primitives.properties import Kind
from primitives.registry import get_binary, get_unary


def _function(name: str, **assumptions: bool) -> Any:
    return sympy.Function(name, real=True, **assumptions)


class Vocabulary:
    """sympy's functions and, beside them, the reductions of a tensor."""

    total = _function("total")
    average = _function("average")
    spread = _function("spread", positive=True)  # the standard deviation, infinite if only noise
    reach = _function("reach", positive=True)  # max - min, infinite if only noise
    least = _function("least")
    softmax = _function("softmax", positive=True)
    log_softmax = _function("log_softmax", nonpositive=True)
    contraction = _function("contraction")
    block_mean = _function("block_mean")
    first_that_holds = _function("first_that_holds")  # condition, value, ..., value otherwise

    def Piecewise(self, *pieces: tuple[Any, Any]) -> Any:  # noqa: N802  # as sympy spells it
        """sympy's own, or `first_that_holds` where a condition would hold another Piecewise.

        sympy moves a Piecewise inside a condition outwards, through functions of whole tensors
        too, which changes what they mean.
        """
        *guarded, (otherwise, _) = pieces
        if not any(sympy.sympify(condition).has(sympy.Piecewise) for _, condition in guarded):
            return sympy.Piecewise(*pieces)
        flat = [part for value, condition in guarded for part in (condition, value)]
        return self.first_that_holds(*flat, otherwise)

    def __getattr__(self, name: str) -> Any:
        return getattr(sympy, name)


VOCABULARY = Vocabulary()
# Ends the name of a binary operation that works on the means where shapes differ.
OF_MATRICES = "_matrices"


def symbol(name: str) -> Any:
    """The real symbol that stands for one tensor of the statistic, or the positive size."""
    return sympy.Symbol(name, positive=True) if name in SIZES else sympy.Symbol(name, real=True)


def to_sympy(formula: Formula) -> Any:
    """The whole formula as a sympy expression, reductions and sign included.

    >>> from primitives.parser import parse
    >>> to_sympy(parse("mul(sqrt(inner(params)), depth)"))
    depth*sqrt(inner(block_mean(params)))
    """
    return formula.sign * fold(formula, _atom, _applied, _joined)


def block_form(term: Term) -> Any:
    """A block's value as a sympy expression; the term's reduction is not part of it."""
    expression = drop_dead(term.expression)
    if expression is None:
        raise FormulaError(f"every branch of {term} is disconnected; connect one")
    return VOCABULARY.block_mean(_symbolic(expression))


def _atom(atom: Atom) -> Any:
    if isinstance(atom, Column):
        return sympy.Symbol(atom.name, real=True)
    return sympy.Function(atom.reduction, real=True)(block_form(atom))


def _applied(operation: str, operand: Any) -> Any:
    return OUTER[operation].sympy(operand, sympy)


def _joined(operation: str, operands: list[Any]) -> Any:
    if operation == "sub":
        return operands[0] - operands[1]
    return sympy.Mul(*operands) if operation == "mul" else sympy.Add(*operands)


def _symbolic(expression: Expression) -> Any:
    if isinstance(expression, Leaf):
        return symbol(expression.name)
    if isinstance(expression, Apply):
        return unary_form(expression.operation, _symbolic(expression.operand))
    left, right = _symbolic(expression.left), _symbolic(expression.right)
    known = facts(expression.left), facts(expression.right)
    primitive = get_binary(expression.operation)
    if not are_aligned(*known):
        left, right = VOCABULARY.block_mean(left), VOCABULARY.block_mean(right)
    meet_as_matrices = are_aligned(*known) and known[0].kind is known[1].kind is Kind.MATRIX
    if primitive.contracts and not meet_as_matrices:
        return left * right
    if meet_as_matrices and not primitive.contracts and _may_change_shape(expression):
        return _function(f"{primitive.name}{OF_MATRICES}")(left, right)
    return primitive.sympy(left, right, VOCABULARY)


def _may_change_shape(expression: Expression) -> bool:
    """Whether a matrix product inside may leave the two sides with different shapes."""
    inside = [node for node in walk(expression) if isinstance(node, Combine)]
    return any(get_binary(node.operation).contracts for node in inside)


def unary_form(operation: str, operand: Any) -> Any:
    """One operation on a sympy operand; a primitive without a form is a function of its name."""
    primitive = get_unary(operation)
    if primitive.sympy is None:
        return _function(operation)(operand)
    return primitive.sympy(operand, VOCABULARY)


def outermost(form: Any, is_wanted: Callable[[Any], bool]) -> list[Any]:
    """The nodes that are wanted and stand in no other such node."""
    if is_wanted(form):
        return [form]
    return [node for argument in form.args for node in outermost(argument, is_wanted)]
