r"""Block expressions as LaTeX, from the templates that the primitives declare."""

from __future__ import annotations

from collections.abc import Mapping

from primitives.block_sizes import SIZES
from primitives.errors import FormulaError
from primitives.expressions import Apply, Combine, Expression, Leaf, children, drop_dead
from primitives.formula import Formula
from primitives.registry import get_binary, get_unary

Names = Mapping[Expression, str]
_BARS = (r"\left|", r"\left\|")


def alive(formula: Formula) -> Expression:
    """The expression without its disconnected branches; raises FormulaError if none is left."""
    expression = drop_dead(formula.expression)
    if expression is None:
        raise FormulaError(f"every branch of {formula} is disconnected; connect one")
    return expression


def leaf_latex(leaf: Leaf, index: str | None) -> str:
    r"""A statistic as \theta_{W}, a size as its letter, both with the position's index if given."""
    if leaf.is_size:
        symbol = SIZES[leaf.name].symbol
        return symbol if index is None else f"{symbol}_{_braced(index)}"
    return rf"\theta_{leaf.name}" if index is None else rf"\theta_{{{leaf.name},{index}}}"


def render(expression: Expression, names: Names, index: str | None = None) -> str:
    """The expression; parts that have names appear by them."""
    if expression in names:
        return names[expression]
    if isinstance(expression, Leaf):
        return leaf_latex(expression, index)
    if isinstance(expression, Apply):
        template = get_unary(expression.operation).latex
        inside = render(expression.operand, names, index)
        if template.startswith("-") or template.endswith(r"\sum {x}"):
            inside = _bracketed(expression.operand, inside, names)
        if template.startswith(_BARS) and inside.startswith(_BARS):
            inside = rf"\, {inside} \,"  # bars next to bars would read as other bars
        return template.replace("{x}", inside)
    template = get_binary(expression.operation).latex
    left, right = (
        _bracketed(side, render(side, names, index), names) for side in children(expression)
    )
    return template.replace("{x}", "\0").replace("{y}", right).replace("\0", left)


def _bracketed(expression: Expression, text: str, names: Names) -> str:
    """In brackets where sums, products and signs would otherwise run into each other."""
    if expression in names:
        return text
    is_negated = isinstance(expression, Apply) and expression.operation == "neg"
    return rf"\left({text}\right)" if is_negated or isinstance(expression, Combine) else text


def _braced(index: str) -> str:
    return index if len(index) == 1 or index.startswith("\\") else f"{{{index}}}"
