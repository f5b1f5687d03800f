r"""Formulas as LaTeX, from the templates that the primitives declare.

The mean that ends every block is left unwritten, as in the paper's equation 2.
"""

from __future__ import annotations

from collections.abc import Mapping

from primitives.errors import FormulaError
from primitives.expressions import Apply, Combine, Expression, Leaf, children, drop_dead, walk
from primitives.formula import Formula
from primitives.registry import get_binary, get_unary

Names = Mapping[Expression, str]
_BARS = (r"\left|", r"\left\|")
_REDUCTIONS = {"sum": r"\sum_{i=1}^{N}", "mean": r"\frac{1}{N}\sum_{i=1}^{N}"}


def to_latex(formula: Formula) -> str:
    r"""The formula as an equation, without its math delimiters.

    >>> from primitives.parser import parse
    >>> to_latex(parse("-mean(square(W))"))
    '\\varphi(\\theta_W) = -\\frac{1}{N}\\sum_{i=1}^{N} \\left( \\left(\\theta_W\\right)^2 \\right)'
    """
    return f"{left_side(formula)} = {right_side(formula)}"


def left_side(formula: Formula) -> str:
    r"""What stands left of the equation's sign: a name, and the statistics."""
    leaves = [node.statistic for node in walk(_alive(formula)) if isinstance(node, Leaf)]
    arguments = ", ".join(rf"\theta_{name}" for name in dict.fromkeys(leaves))
    return rf"\varphi({arguments})"


def right_side(formula: Formula, names: Names | None = None) -> str:
    r"""What stands right of the equation's sign; parts that have names appear by them."""
    body = _render(_alive(formula), names or {})
    sign = "-" if formula.sign < 0 else ""
    return rf"{sign}{_REDUCTIONS[formula.reduction]} \left( {body} \right)"


def in_parts(formula: Formula, size: int) -> list[tuple[str, str]]:
    r"""(left, right) sides of equations of about `size` nodes at most, the formula's own first.

    Parts of a long formula get names X_1, X_2, and so on; equal parts get one.
    """
    names: dict[Expression, str] = {}
    whole = _alive(formula)
    _name_parts(whole, size, names)
    names.pop(whole, None)
    lines = [(left_side(formula), right_side(formula, names))]
    for part, name in names.items():
        others = {node: other for node, other in names.items() if node != part}
        lines.append((name, _render(part, others)))
    return lines


def _name_parts(expression: Expression, size: int, names: dict[Expression, str]) -> int:
    """Name what is too long, innermost first; the nodes that are left of the expression."""
    if expression in names:
        return 1
    left = 1 + sum(_name_parts(child, size, names) for child in children(expression))
    if left < size:
        return left
    names[expression] = f"X_{{{len(names) + 1}}}"
    return 1


def _alive(formula: Formula) -> Expression:
    expression = drop_dead(formula.expression)
    if expression is None:
        raise FormulaError(f"every branch of {formula} is disconnected; connect one")
    return expression


def _render(expression: Expression, names: Names) -> str:
    if expression in names:
        return names[expression]
    if isinstance(expression, Leaf):
        return rf"\theta_{expression.statistic}"
    if isinstance(expression, Apply):
        template = get_unary(expression.operation).latex
        inside = _render(expression.operand, names)
        if template.startswith("-") or template.endswith(r"\sum {x}"):
            inside = _bracketed(expression.operand, inside, names)
        if template.startswith(_BARS) and inside.startswith(_BARS):
            inside = rf"\, {inside} \,"  # bars next to bars would read as other bars
        return template.replace("{x}", inside)
    template = get_binary(expression.operation).latex
    left, right = (_bracketed(side, _render(side, names), names) for side in children(expression))
    return template.replace("{x}", "\0").replace("{y}", right).replace("\0", left)


def _bracketed(expression: Expression, text: str, names: Names) -> str:
    """In brackets where sums, products and signs would otherwise run into each other."""
    if expression in names:
        return text
    is_negated = isinstance(expression, Apply) and expression.operation == "neg"
    return rf"\left({text}\right)" if is_negated or isinstance(expression, Combine) else text
