"""Formulas as sympy expressions, with the protected meaning written out.

Element-wise operations become sympy's own; what looks at a whole tensor (total, average, softmax,
the matrix product) becomes a named function of it. `block_mean` marks where tensors are reduced to
one scalar per block; the outermost one is the block's value. The forms describe whole tensors:
a sketch's rescaling is not part of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import sympy
from sympy.core.function import AppliedUndef

from primitives.errors import FormulaError, TensorError
from primitives.expressions import Apply, Expression, Leaf, drop_dead
from primitives.facts import are_aligned, facts
from primitives.formula import Formula
from primitives.guards import SPREAD_FLOOR
from primitives.naive import Block
from primitives.properties import Kind
from primitives.registry import STATISTICS, UNARIES, get_binary, get_unary


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
    contraction = _function("contraction")
    block_mean = _function("block_mean")

    def __getattr__(self, name: str) -> Any:
        return getattr(sympy, name)


VOCABULARY = Vocabulary()


def symbol(statistic: str) -> Any:
    """The real symbol that stands for one tensor of the statistic."""
    return sympy.Symbol(statistic, real=True)


def to_sympy(formula: Formula) -> Any:
    """The block's value as a sympy expression; reduction and sign are not part of it."""
    expression = drop_dead(formula.expression)
    if expression is None:
        raise FormulaError(f"every branch of {formula} is disconnected; connect one")
    return VOCABULARY.block_mean(_symbolic(expression))


def simplify(form: Any) -> Any:
    """sympy's simplification, kept inside each function of a whole tensor.

    sympy would otherwise pull the pieces of a Piecewise out of such a function, as if it worked
    element by element: average of (log x or 0) is not (average of log x) or 0.
    """
    inside = {
        node: node.func(*map(simplify, node.args))
        for node in _outermost(form, lambda node: isinstance(node, AppliedUndef))
    }
    names = {node: sympy.Dummy(real=True) for node in inside}
    opaque = form.xreplace(names)
    try:
        simple = sympy.simplify(opaque)
    except (TypeError, ValueError, NotImplementedError):
        simple = opaque  # sympy gives up on some guards (it compares 1/0); the form stays right
    return simple.xreplace({names[node]: inside[node] for node in inside})


def score_form(form: Any, formula: Formula, blocks: Sequence[Block]) -> float:
    """The value of a sympy form of the formula on blocks of whole tensors."""
    values = [float(_evaluate(form, block)) for block in blocks]
    total = sum(values)
    return formula.sign * (total / len(values) if formula.reduction == "mean" else total)


def _symbolic(expression: Expression) -> Any:
    if isinstance(expression, Leaf):
        return symbol(expression.statistic)
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
    return primitive.sympy(left, right, VOCABULARY)


def unary_form(operation: str, operand: Any) -> Any:
    """One operation on a sympy operand; a primitive without a form is a function of its name."""
    primitive = get_unary(operation)
    if primitive.sympy is None:
        return _function(operation)(operand)
    return primitive.sympy(operand, VOCABULARY)


def _outermost(form: Any, is_wanted: Callable[[Any], bool]) -> list[Any]:
    if is_wanted(form):
        return [form]
    return [node for argument in form.args for node in _outermost(argument, is_wanted)]


def _evaluate(form: Any, block: Block) -> Any:
    """The form with every block mean replaced by its number."""
    numbers = {}
    for node in _outermost(form, lambda node: node.func == VOCABULARY.block_mean):
        numbers[node] = sympy.Float(_mean_over_tensors(node.args[0], block), 17)
    return form.xreplace(numbers)


def _mean_over_tensors(form: Any, block: Block) -> float:
    form = _evaluate(form, block)
    names = sorted(s.name for s in form.free_symbols)
    run = as_numpy(form, names)
    columns = [[_whole_values(matrix) for matrix in block[name]] for name in names]
    tensors = list(zip(*columns, strict=True)) if names else [()]
    with np.errstate(all="ignore"):  # numpy evaluates every piece of a Piecewise
        return float(np.mean([np.mean(run(*values)) for values in tensors]))


def as_numpy(form: Any, names: Sequence[str]) -> Any:
    """A NumPy function of the named statistics' tensors."""
    own = {name: (lambda x, p=primitive: p(x)) for name, primitive in UNARIES.items()}
    arguments = [symbol(name) if name in STATISTICS else sympy.Symbol(name) for name in names]
    # 1/0 stands in pieces that a guard never reaches, and has no name in NumPy.
    reachable = form.xreplace({sympy.zoo: sympy.nan})
    return sympy.lambdify(arguments, reachable, modules=[_NUMPY, own, "numpy"])


def _whole_values(matrix: Any) -> Any:
    if matrix.kept != matrix.true_columns:
        raise TensorError("a sympy form is evaluated on whole tensors, a cut one was given")
    return matrix.values


def _floored(x: Any, size: Any) -> Any:
    return size if size > SPREAD_FLOOR * np.max(np.abs(x)) else np.inf


def _softmax(x: Any) -> Any:
    powers = np.exp(x - np.max(x, axis=0))
    return powers / np.sum(powers, axis=0)


def _contraction(x: Any, y: Any) -> Any:
    if x.shape[1] == y.shape[0]:
        return x @ y
    return x @ y.T if x.shape[1] == y.shape[1] else np.mean(x) * np.mean(y)


_NUMPY = {
    "total": np.sum,
    "average": np.mean,
    "spread": lambda x: _floored(x, np.std(x)),
    "reach": lambda x: _floored(x, np.ptp(x)),
    "least": np.min,
    "softmax": _softmax,
    "contraction": _contraction,
}
