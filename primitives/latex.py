r"""Formulas as LaTeX, from the templates that the primitives declare.

The mean that ends every block is left unwritten, as in the paper's equation 2; `explicit_mean`
writes it as an overline.
"""

from __future__ import annotations

from primitives.errors import FormulaError
from primitives.expressions import Apply, Combine, Expression, Leaf, drop_dead, walk
from primitives.formula import Formula
from primitives.registry import get_binary, get_unary

_BARS = (r"\left|", r"\left\|")
_REDUCTIONS = {"sum": r"\sum_{i=1}^{N}", "mean": r"\frac{1}{N}\sum_{i=1}^{N}"}


def to_latex(formula: Formula, explicit_mean: bool = False) -> str:
    r"""The formula as an equation, without its math delimiters.

    >>> from primitives.parsing import parse
    >>> to_latex(parse("-mean(square(W))"))
    '\\varphi(\\theta_W) = -\\frac{1}{N}\\sum_{i=1}^{N} \\left( \\left(\\theta_W\\right)^2 \\right)'
    """
    leaves = [node.statistic for node in walk(_alive(formula)) if isinstance(node, Leaf)]
    arguments = ", ".join(rf"\theta_{name}" for name in dict.fromkeys(leaves))
    return rf"\varphi({arguments}) = {right_side(formula, explicit_mean)}"


def right_side(formula: Formula, explicit_mean: bool = False) -> str:
    r"""What stands right of the equation's sign, for cells of a table."""
    body = _render(_alive(formula))
    if explicit_mean:
        body = rf"\overline{{{body}}}"
    sign = "-" if formula.sign < 0 else ""
    return rf"{sign}{_REDUCTIONS[formula.reduction]} \left( {body} \right)"


def _alive(formula: Formula) -> Expression:
    expression = drop_dead(formula.expression)
    if expression is None:
        raise FormulaError(f"every branch of {formula} is disconnected; connect one")
    return expression


def _render(expression: Expression) -> str:
    if isinstance(expression, Leaf):
        return rf"\theta_{expression.statistic}"
    if isinstance(expression, Apply):
        template = get_unary(expression.operation).latex
        inside = _render(expression.operand)
        if template.startswith("-") or template.endswith(r"\sum {x}"):
            inside = _bracketed(expression.operand, inside)
        if template.startswith(_BARS) and inside.startswith(_BARS):
            inside = rf"\, {inside} \,"  # bars next to bars would read as other bars
        return template.replace("{x}", inside)
    template = get_binary(expression.operation).latex
    left = _bracketed(expression.left, _render(expression.left))
    right = _bracketed(expression.right, _render(expression.right))
    return template.replace("{x}", "\0").replace("{y}", right).replace("\0", left)


def _bracketed(expression: Expression, text: str) -> str:
    """In brackets where sums, products and signs would otherwise run into each other."""
    is_negated = isinstance(expression, Apply) and expression.operation == "neg"
    return rf"\left({text}\right)" if is_negated or isinstance(expression, Combine) else text
