"""Formulas as sympy expressions, with the protected meaning written out.

A term is `inner(block_mean(...))`: a function that has the reduction's name, of the sympy form of a
block. Above the terms stands plain mathematics, which sympy may simplify.

Element-wise operations become sympy's own; what looks at a whole tensor (total, average, softmax,
the matrix product) becomes a named function of it. `block_mean` marks where tensors are reduced to
one scalar per block; the outermost one is the block's value. The forms describe whole tensors:
a sketch's rescaling is not part of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
import sympy
from sympy.printing.numpy import NumPyPrinter

from primitives.errors import FormulaError, TensorError
from primitives.expressions import Apply, Expression, Leaf, drop_dead
from primitives.facts import Meeting, facts, meeting, shapes_may_differ
from primitives.formula import AtomOrConstant, Column, Constant, Formula, Term, fold
from primitives.guards import SPREAD_FLOOR
from primitives.outer import OUTER
from primitives.properties import on_change
from primitives.reductions import POSITION_REDUCTIONS
from primitives.registry import BINARIES, UNARIES, Binary, get_binary, get_unary
from primitives.statistics import SIZES, STATISTICS
from primitives.tensors import (
    Block,
    NetworkValues,
    as_network,
    have_same_shape,
    right_factor,
    whole,
)


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


def _atom(atom: AtomOrConstant) -> Any:
    if isinstance(atom, Constant):
        return sympy.Float(atom.value)
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
    primitive = get_binary(expression.operation)
    how = meeting(facts(expression.left), facts(expression.right), primitive)
    if how is Meeting.MEANS:
        left, right = VOCABULARY.block_mean(left), VOCABULARY.block_mean(right)
    if primitive.contracts and how is not Meeting.PRODUCT:
        return left * right
    if how is Meeting.ELEMENTS and shapes_may_differ(expression):
        return _function(f"{primitive.name}{OF_MATRICES}")(left, right)
    return primitive.sympy(left, right, VOCABULARY)


def unary_form(operation: str, operand: Any) -> Any:
    """One operation on a sympy operand; a primitive without a form is a function of its name."""
    primitive = get_unary(operation)
    if primitive.sympy is None:
        return _function(operation)(operand)
    return primitive.sympy(operand, VOCABULARY)


def score_sympy(
    form: Any,
    network: NetworkValues | Sequence[Block],
    columns: Mapping[str, float] | None = None,
) -> float:
    """The value of a formula's sympy form on a network of whole tensors and its columns."""
    given = as_network(network), columns or {}
    with np.errstate(all="ignore"):  # numpy evaluates every piece of a Piecewise
        return float(as_numpy(form, "network", "columns")(*given))


@lru_cache(maxsize=64)
def as_numpy(form: Any, *arguments: str) -> Any:
    """The form as a NumPy function: of a network and its columns, or of the tensors that it names.

    Printed once, whatever the number of blocks and tensors it is called for.
    """
    own = {name: (lambda x, p=primitive: p(x)) for name, primitive in UNARIES.items()}
    functions = own | of_tensors()
    settings = {
        "fully_qualified_modules": False,
        "inline": True,
        "allow_unknown_functions": True,
        "user_functions": {name: name for name in functions},
    }
    symbols = [sympy.Symbol(name) for name in arguments]
    modules = [functions, _ON_NETWORKS, "numpy"]
    return sympy.lambdify(symbols, form, modules=modules, printer=_Printer(settings))


on_change(as_numpy.cache_clear)


class _Printer(NumPyPrinter):  # type: ignore[misc]
    """Prints a term as a function of a block, and a block's mean as one of a block's tensors.

    Conditions are printed as they stand: sympy would simplify them first, and fail on guards.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__(settings)
        self._statistics: list[set[str]] = [set()]  # those in each mean that is being printed

    def _print_Symbol(self, form: Any) -> str:  # noqa: N802  # as sympy asks, also below
        if form.name in STATISTICS:
            self._statistics[-1].add(form.name)
            return str(form.name)
        is_size = form.name in SIZES
        return f"size(block, {form.name!r})" if is_size else f"column(columns, {form.name!r})"

    def _block_mean(self, form: Any) -> str:
        self._statistics.append(set())
        value = self._print(form.args[0])
        names = sorted(self._statistics.pop())
        return f"block_mean(block, {names}, lambda {', '.join(names)}: {value})"

    def _print_Function(self, form: Any) -> str:  # noqa: N802
        name = str(form.func)
        if form.func == VOCABULARY.block_mean:
            return self._block_mean(form)
        if name in POSITION_REDUCTIONS:
            return f"over_blocks(network, {name!r}, lambda block: {self._print(form.args[0])})"
        return str(super()._print_Function(form))

    def _print_Piecewise(self, form: Any) -> str:  # noqa: N802
        pieces = ", ".join(f"{self._print(c)}, {self._print(e)}" for e, c in form.args)
        return f"first_that_holds({pieces}, nan)"

    def _print_ComplexInfinity(self, form: Any) -> str:  # noqa: N802
        return "nan"  # 1/0 stands in pieces that a guard never reaches


def _over_blocks(network: NetworkValues, reduction: str, value: Callable[[Block], Any]) -> float:
    """The values at the positions that the reduction reads, as one number."""
    positions = network.read(reduction)
    if positions is None:
        raise TensorError(f"the network has no {reduction} to read")
    values = [float(value(position)) for position in positions]
    return POSITION_REDUCTIONS[reduction].combine(values, len(network.blocks))


def _block_mean(block: Block, names: Sequence[str], value: Callable[..., Any]) -> Any:
    """The mean over tensors of each tensor's mean of the value."""
    columns = [[_whole_values(matrix) for matrix in block[name]] for name in names]
    tensors = list(zip(*columns, strict=True)) if names else [()]
    return np.mean([np.mean(value(*of_tensor)) for of_tensor in tensors])


def _size(block: Block, name: str) -> Any:
    return block[name][0].values


def _column(columns: Mapping[str, float], name: str) -> float:
    if name not in columns:
        raise TensorError(f"the architecture has no column {name!r}")
    return columns[name]


_ON_NETWORKS = {
    "over_blocks": _over_blocks,
    "block_mean": _block_mean,
    "size": _size,
    "column": _column,
}


def first_that_holds(*pieces: Any) -> Any:
    """Element by element the value after the first condition that holds, else the last value."""
    conditions, values = (*pieces[:-1:2], True), (*pieces[1:-1:2], pieces[-1])
    shape = np.broadcast_shapes(*(np.shape(x) for x in (*values, *conditions)))
    return np.select(
        [np.broadcast_to(np.asarray(c, dtype=bool), shape) for c in conditions],
        [np.broadcast_to(np.asarray(v, dtype=np.float64), shape) for v in values],
        default=np.nan,
    )


def _whole_values(matrix: Any) -> Any:
    if matrix.kept != matrix.true_columns:
        raise TensorError("a sympy form is evaluated on whole tensors, a cut one was given")
    return matrix.values


def _floored(x: Any, size: Any) -> Any:
    return size if size > SPREAD_FLOOR * np.max(np.abs(x)) else np.inf


def _softmax(x: Any) -> Any:
    powers = np.exp(x - np.max(x, axis=0))
    return powers / np.sum(powers, axis=0)


def _log_softmax(x: Any) -> Any:
    shifted = x - np.max(x, axis=0)
    return shifted - np.log(np.sum(np.exp(shifted), axis=0))


def _contraction(x: Any, y: Any) -> Any:
    if np.ndim(x) < 2 or np.ndim(y) < 2:
        raise TensorError("sympy found an operand of a matrix product constant: its shape is lost")
    factor = right_factor(whole(x), whole(y))
    return np.mean(x) * np.mean(y) if factor is None else x @ factor.values


def of_tensors() -> dict[str, Callable[..., Any]]:
    """What the functions of whole tensors mean on NumPy arrays, by name."""
    fitted = {
        f"{name}{OF_MATRICES}": partial(_fitted, primitive)
        for name, primitive in BINARIES.items()
        if not primitive.contracts
    }
    return _NUMPY | fitted


def _fitted(primitive: Binary, x: Any, y: Any) -> Any:
    is_matrices = np.ndim(x) == np.ndim(y) == 2
    if is_matrices and not have_same_shape(whole(x), whole(y)):
        x, y = np.mean(x), np.mean(y)
    return primitive.body(x, y, np)


_NUMPY: dict[str, Callable[..., Any]] = {
    "total": np.sum,
    "average": np.mean,
    "spread": lambda x: _floored(x, np.std(x)),
    "reach": lambda x: _floored(x, np.ptp(x)),
    "least": np.min,
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "contraction": _contraction,
    "first_that_holds": first_that_holds,
}
