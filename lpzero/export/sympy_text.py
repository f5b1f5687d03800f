"""The text of a sympy form, evaluated on NumPy arrays without sympy and without eval.

Python's parser builds the tree; every node must be on the lists below. All numbers are floats, so
the work is proportional to the length of the text. A text is a block's value, or a whole score,
which may contain reductions over positions and columns.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from lpzero.errors import InputError
from primitives.block_sizes import SIZES
from primitives.network import Block, NetworkValues
from primitives.reductions import POSITION_REDUCTIONS
from primitives.statistics import STATISTICS
from primitives.tensors import Matrix

_MAX_LENGTH = 200_000
_MAX_BRACKETS = 150
_MAX_SIGNS = re.compile(r"([-+~]\s*){9}")
_ALLOWED = re.compile(r"[A-Za-z0-9_ ()+\-*/.,<>=&|~]*")
_CONSTANTS = {
    "True": True,
    "False": False,
    "E": np.e,
    "pi": np.pi,
    "oo": np.inf,
    "zoo": np.nan,
    "nan": np.nan,
}
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "Abs": np.abs,
    "re": lambda x: x,
    "sign": np.sign,
    "Max": lambda *xs: _fold(np.maximum, xs),
    "Min": lambda *xs: _fold(np.minimum, xs),
    "Ne": lambda x, y: np.not_equal(x, y),
    "Eq": lambda x, y: np.equal(x, y),
    "ITE": lambda c, x, y: np.where(c, x, y),
    "Not": np.logical_not,
}
_BINARY = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.true_divide,
    ast.Pow: np.power,
    ast.BitAnd: np.logical_and,
    ast.BitOr: np.logical_or,
}
_UNARY = {ast.USub: np.negative, ast.UAdd: np.positive, ast.Invert: np.logical_not}
_COMPARE = {
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
}


class FormText:
    """A form that was checked to contain only allowed names and operations."""

    def __init__(self, text: str, where: str, columns: Collection[str] | None = None) -> None:
        """`columns` are the names that a score may contain; None for a block's value."""
        from primitives.lambdified import of_tensors  # imports sympy, which other forms do not need

        self.text, self.where = text.strip(), where
        self._columns = frozenset(columns or ())
        self._reductions = {} if columns is None else POSITION_REDUCTIONS
        self._beside = self._columns if columns is None else self._columns.union(SIZES)
        self._functions = {**of_tensors(), **_FUNCTIONS}
        try:
            self._check_text()
            self._tree = ast.parse(self.text, mode="eval").body
            self._check(self._tree)
        except (SyntaxError, RecursionError, MemoryError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{where}: the form cannot be read") from None

    def value(self, block: Block) -> float:
        """The value of one block of whole tensors."""
        with np.errstate(all="ignore"):  # every piece of a Piecewise is computed
            return float(self._run(self._tree, {}, block))

    def score(self, network: NetworkValues, columns: Mapping[str, float]) -> float:
        """The value of a whole score on a network of whole tensors."""
        with np.errstate(all="ignore"):
            given = {name: float(columns[name]) for name in self._columns}
            return float(self._run(self._tree, given, network))

    def _check_text(self) -> None:
        if len(self.text) > _MAX_LENGTH:
            raise InputError(f"{self.where}: the form has more than {_MAX_LENGTH:,} characters")
        if not _ALLOWED.fullmatch(self.text):
            raise InputError(f"{self.where}: the form contains a character that is not allowed")
        depth = deepest = 0
        for character in self.text:
            depth += (character == "(") - (character == ")")
            deepest = max(deepest, depth)
        if deepest > _MAX_BRACKETS or _MAX_SIGNS.search(self.text):
            raise InputError(f"{self.where}: the form is nested too deeply")

    def _check(self, *nodes: ast.AST) -> None:
        """Raise InputError unless every node is on the lists."""
        for node in nodes:
            if not self._is_known(node):
                text = ast.unparse(node) if isinstance(node, ast.expr) else type(node).__name__
                raise InputError(f"{self.where}: {text[:40]!r} is not allowed in a form")

    def _is_known(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Name):
            return any(node.id in of for of in (STATISTICS, _CONSTANTS, self._beside))
        if isinstance(node, ast.Constant):
            return isinstance(node.value, (int, float))
        if isinstance(node, ast.BinOp):
            self._check(node.left, node.right)
            return type(node.op) in _BINARY
        if isinstance(node, ast.UnaryOp):
            self._check(node.operand)
            return type(node.op) in _UNARY
        if isinstance(node, ast.Compare):
            self._check(node.left, *node.comparators)
            return len(node.ops) == 1 and type(node.ops[0]) in _COMPARE
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.keywords:
            return False
        name = node.func.id
        if name == "Piecewise":
            pieces = [piece.elts for piece in node.args if isinstance(piece, ast.Tuple)]
            self._check(*(part for piece in pieces for part in piece))
            return len(pieces) == len(node.args) > 0 and all(len(piece) == 2 for piece in pieces)
        self._check(*node.args)
        takes_one = name == "block_mean" or name in self._reductions
        return name in self._functions or (takes_one and len(node.args) == 1)

    def _run(self, node: Any, tensors: Mapping[str, Any], block: Block | NetworkValues) -> Any:
        if isinstance(node, ast.Name):
            return tensors[node.id] if node.id in tensors else self._constant(node.id)
        if isinstance(node, ast.Constant):
            return float(node.value)  # type: ignore[arg-type]  # checked to be a number
        if isinstance(node, ast.BinOp):
            left, right = (self._run(side, tensors, block) for side in (node.left, node.right))
            return _BINARY[type(node.op)](left, right)
        if isinstance(node, ast.UnaryOp):
            return _UNARY[type(node.op)](self._run(node.operand, tensors, block))
        if isinstance(node, ast.Compare):
            left = self._run(node.left, tensors, block)
            right = self._run(node.comparators[0], tensors, block)
            return _COMPARE[type(node.ops[0])](left, right)
        if node.func.id in self._reductions:
            return self._reduced(node, block)
        if node.func.id == "block_mean":
            return self._block_mean(node.args[0], block)
        if node.func.id == "Piecewise":
            run = self._run
            pieces = [run(x, tensors, block) for p in node.args for x in reversed(p.elts)]
            return self._functions["first_that_holds"](*pieces, np.nan)
        arguments = [self._run(argument, tensors, block) for argument in node.args]
        try:
            return self._functions[node.func.id](*arguments)
        except (TypeError, ValueError, IndexError, AttributeError):
            raise InputError(
                f"{self.where}: {node.func.id} does not accept these arguments"
            ) from None

    def _constant(self, name: str) -> float | bool:
        if name not in _CONSTANTS:
            raise InputError(f"{self.where}: {name} must be inside a block_mean")
        return _CONSTANTS[name]

    def _reduced(self, node: Any, network: Block | NetworkValues) -> float:
        if not isinstance(network, NetworkValues):
            raise InputError(f"{self.where}: {node.func.id} must not be inside another reduction")
        positions = network.read(node.func.id)
        if positions is None:
            raise InputError(f"{self.where}: the network has no {node.func.id}")
        values = [float(self._run(node.args[0], {}, position)) for position in positions]
        return self._reductions[node.func.id].combine(values, len(network.blocks))

    def _block_mean(self, node: ast.AST, block: Block | NetworkValues) -> float:
        if isinstance(block, NetworkValues):
            raise InputError(f"{self.where}: a block_mean must be inside a reduction")
        sizes = {name: block[name][0].values for name in _names(node) if name in SIZES}
        names = sorted({n for n in _names(node) if n in STATISTICS})
        columns = [[_whole(matrix) for matrix in block[name]] for name in names]
        if len({len(column) for column in columns}) > 1:
            raise InputError(f"{self.where}: {', '.join(names)} do not correspond one to one")
        means = [
            np.mean(self._run(node, sizes | dict(zip(names, values, strict=True)), block))
            for values in (zip(*columns, strict=True) if names else [()])
        ]
        return float(np.mean(means))


def _names(node: ast.AST) -> list[str]:
    """The names in the node, except those inside a nested block_mean."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        inside: list[ast.AST] = [] if node.func.id == "block_mean" else list(node.args)
    else:
        inside = list(ast.iter_child_nodes(node))
    return [name for child in inside for name in _names(child)]


def _fold(operation: Any, values: tuple[Any, ...]) -> Any:
    result = values[0]
    for value in values[1:]:
        result = operation(result, value)
    return result


def _whole(matrix: Matrix) -> Any:
    if matrix.kept != matrix.true_columns:
        raise InputError("a sympy form is evaluated on whole tensors, but a cut one was given")
    return matrix.values
