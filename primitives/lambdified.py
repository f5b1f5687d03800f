"""sympy forms of formulas as NumPy functions, for blocks of whole tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import sympy
from sympy.printing.numpy import NumPyPrinter

from primitives.block_sizes import SIZES
from primitives.errors import TensorError
from primitives.guards import SPREAD_FLOOR
from primitives.network import Block, NetworkValues, as_network
from primitives.reductions import POSITION_REDUCTIONS
from primitives.registry import BINARIES, UNARIES, Binary
from primitives.statistics import STATISTICS
from primitives.symbolic import OF_MATRICES, VOCABULARY, outermost, symbol


def score_sympy(
    form: Any,
    network: NetworkValues | Sequence[Block],
    columns: Mapping[str, float] | None = None,
) -> float:
    """The value of a formula's sympy form on a network of whole tensors and its columns."""
    whole, given = as_network(network), columns or {}
    terms = outermost(form, lambda node: str(node.func) in POSITION_REDUCTIONS)
    values = {term: _reduced(term.args[0], str(term.func), whole) for term in terms}
    opened = form.xreplace({term: sympy.Float(value, 17) for term, value in values.items()})
    missing = sorted(s.name for s in opened.free_symbols if s.name not in given)
    if missing:
        raise TensorError(f"the architecture has no column {missing[0]!r}")
    numbers = {s: sympy.Float(given[s.name], 17) for s in opened.free_symbols}
    return float(opened.xreplace(numbers))


def _reduced(form: Any, reduction: Any, network: NetworkValues) -> float:
    """The form's values at the positions that the reduction reads, as one number."""
    positions = network.read(reduction)
    if positions is None:
        raise TensorError(f"the network has no {reduction} to read")
    values = [_evaluate(form, position) for position in positions]
    return POSITION_REDUCTIONS[reduction].combine(values, len(network.blocks))


def _evaluate(form: Any, block: Block) -> float:
    """The mean over tensors of the form; sizes and block means inside it go in as numbers."""
    inside = outermost(form, lambda node: node.func == VOCABULARY.block_mean)
    numbers = {node: _evaluate(node.args[0], block) for node in inside}
    stand_ins = {node: sympy.Dummy(real=True) for node in numbers}
    opened = form.xreplace(stand_ins)
    used = sorted(s.name for s in opened.free_symbols - set(stand_ins.values()))
    names = [name for name in used if name not in SIZES]
    sizes = {name: block[name][0].values for name in used if name in SIZES}
    run = as_numpy(opened, names, [*stand_ins.values(), *map(symbol, sizes)])
    columns = [[_whole_values(matrix) for matrix in block[name]] for name in names]
    tensors = list(zip(*columns, strict=True)) if names else [()]
    with np.errstate(all="ignore"):  # numpy evaluates every piece of a Piecewise
        return float(
            np.mean(
                [np.mean(run(*values, *numbers.values(), *sizes.values())) for values in tensors]
            )
        )


def as_numpy(form: Any, names: Sequence[str], numbers: Sequence[Any] = ()) -> Any:
    """A NumPy function of the named statistics' tensors, then of the symbols in `numbers`."""
    own = {name: (lambda x, p=primitive: p(x)) for name, primitive in UNARIES.items()}
    arguments = [symbol(name) if name in STATISTICS else sympy.Symbol(name) for name in names]
    # 1/0 stands in pieces that a guard never reaches, and has no name in NumPy.
    reachable = form.xreplace({sympy.zoo: sympy.nan})
    functions = of_tensors()
    names_of_ours = {name: name for name in (*own, *functions)}
    printer = _Printer(
        {
            "fully_qualified_modules": False,
            "inline": True,
            "allow_unknown_functions": True,
            "user_functions": names_of_ours,
        }
    )
    modules = [functions, own, "numpy"]
    return sympy.lambdify([*arguments, *numbers], reachable, modules=modules, printer=printer)


class _Printer(NumPyPrinter):  # type: ignore[misc]
    """Prints conditions as they stand: sympy would simplify them first, and fail on guards."""

    def _print_Piecewise(self, form: Any) -> str:  # noqa: N802  # as sympy asks
        pieces = ", ".join(f"{self._print(c)}, {self._print(e)}" for e, c in form.args)
        return f"first_that_holds({pieces}, nan)"


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
    if x.shape[1] == y.shape[0]:
        return x @ y
    return x @ y.T if x.shape[1] == y.shape[1] else np.mean(x) * np.mean(y)


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
    if is_matrices and x.shape != y.shape:
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
