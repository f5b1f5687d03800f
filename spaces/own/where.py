"""Constraints between choices that a file states: an expression, read by a parser of its own.

    where: num_attention_heads % num_key_value_heads == 0 and hidden_size >= 64

Names of choices and fields, numbers, texts, + - * / // %, comparisons, `in` a list, and, or, not:
nothing else is an expression, so a stranger's file runs no code.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from spaces.errors import DeclarationError, shown

_LONGEST, _MOST_NODES = 1000, 200
_ARITHMETIC: dict[type[Any], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARISONS: dict[type[Any], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda value, of: value in of,
    ast.NotIn: lambda value, of: value not in of,
}
_ALLOWED = (
    *(ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.BinOp),
    *(ast.Compare, ast.Constant, ast.Name, ast.Load, ast.List, ast.Tuple),
    *_ARITHMETIC,
    *_COMPARISONS,
)


@dataclass(frozen=True, slots=True)
class Where:
    """Whether the expression holds for a configuration."""

    text: str

    def __post_init__(self) -> None:
        _read(self.text)

    def __call__(self, configuration: Mapping[str, Any]) -> bool:
        return bool(_value(_read(self.text).body, configuration, self.text))


@lru_cache(maxsize=64)
def _read(text: str) -> ast.Expression:
    if not isinstance(text, str) or len(text) > _LONGEST:
        raise DeclarationError(f"where is {shown(text)}, expected an expression such as a % b == 0")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise DeclarationError(f"where: {shown(text)} is no expression") from None
    nodes = list(ast.walk(tree))
    for node in nodes:
        is_value = not isinstance(node, ast.Constant) or isinstance(node.value, (int, float, str))
        if not isinstance(node, _ALLOWED) or not is_value or len(nodes) > _MOST_NODES:
            raise DeclarationError(
                f"where: {type(node).__name__} in {shown(text)}; expected names, numbers, + - * /"
                " // %, comparisons, and, or, not"
            )
    return tree


def _value(node: ast.expr, fields: Mapping[str, Any], text: str) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        if node.id not in fields:
            raise DeclarationError(f"where: {shown(text)} names {node.id}, which is no choice")
        return fields[node.id]
    if isinstance(node, ast.BoolOp):
        parts = (_value(part, fields, text) for part in node.values)
        return all(parts) if isinstance(node.op, ast.And) else any(parts)
    if isinstance(node, ast.UnaryOp):
        inside = _value(node.operand, fields, text)
        return not inside if isinstance(node.op, ast.Not) else -_number(inside, text)
    if isinstance(node, ast.BinOp):
        left, right = (_number(_value(n, fields, text), text) for n in (node.left, node.right))
        try:
            return _ARITHMETIC[type(node.op)](left, right)
        except (ZeroDivisionError, OverflowError):
            raise DeclarationError(f"where: {shown(text)} divides by zero, or overflows") from None
    if isinstance(node, (ast.List, ast.Tuple)):
        return [_value(part, fields, text) for part in node.elts]
    assert isinstance(node, ast.Compare), "the parser allows nothing else"
    values = [_value(part, fields, text) for part in (node.left, *node.comparators)]
    try:
        return all(
            _COMPARISONS[type(op)](a, b)
            for op, a, b in zip(node.ops, values, values[1:], strict=False)
        )
    except TypeError:
        raise DeclarationError(f"where: {shown(text)} compares values of two kinds") from None


def _number(value: Any, text: str) -> Any:
    if isinstance(value, str) or not isinstance(value, (int, float)):
        raise DeclarationError(f"where: {shown(text)} computes with {shown(value)}")
    return value
