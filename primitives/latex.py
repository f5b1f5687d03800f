r"""Formulas as LaTeX, from the templates that the primitives declare.

The mean that ends every block is left unwritten, as in the paper's equation 2. A formula of
the paper's form is written in the paper's notation (blocks 1 to N); everything beyond it names the
position \ell, because that is what it is about.
"""

from __future__ import annotations

from primitives.expression_latex import Names, alive, leaf_latex, render
from primitives.expressions import Expression, Leaf, children
from primitives.formula import PAPER_REDUCTIONS, Formula
from primitives.score import AnyFormula
from primitives.score_latex import column_latex, term_latex, tree_latex

_REDUCTIONS = {"sum": r"\sum_{i=1}^{N}", "mean": r"\frac{1}{N}\sum_{i=1}^{N}"}


def to_latex(formula: AnyFormula) -> str:
    r"""The formula as an equation, without its math delimiters.

    >>> from primitives.parser import parse
    >>> to_latex(parse("-mean(square(W))"))
    '\\varphi(\\theta_W) = -\\frac{1}{N}\\sum_{i=1}^{N} \\left( \\left(\\theta_W\\right)^2 \\right)'
    >>> right_side(parse("mul(depth, inverse(sqrt(inner(params))))"))
    '\\frac{\\mathrm{depth}}{\\left(\\sum_{\\ell<L} P_\\ell\\right)^{1/2}}'
    """
    return f"{left_side(formula)} = {right_side(formula)}"


def left_side(formula: AnyFormula) -> str:
    r"""What stands left of the equation's sign: a name, and what the value depends on."""
    for term in formula.terms:
        alive(term)
    leaves = [leaf_latex(Leaf(name), None) for name in (*formula.statistics, *formula.sizes)]
    arguments = ", ".join([*leaves, *map(column_latex, formula.columns)])
    return rf"\varphi({arguments})"


def right_side(formula: AnyFormula, names: Names | None = None) -> str:
    r"""What stands right of the equation's sign; parts that have names appear by them."""
    sign = "-" if formula.sign < 0 else ""
    if not isinstance(formula, Formula):
        text = tree_latex(formula.tree, names or {})
        is_sum = str(formula.tree).startswith(("add(", "sub("))
        return rf"{sign}\left({text}\right)" if sign and is_sum else f"{sign}{text}"
    if not _is_papers(formula):
        text = term_latex(formula, names or {})
        return rf"{sign}\left({text}\right)" if sign and text.startswith("-") else sign + text
    body = render(alive(formula), names or {})
    return rf"{sign}{_REDUCTIONS[formula.reduction]} \left( {body} \right)"


def in_parts(formula: AnyFormula, size: int) -> list[tuple[str, str]]:
    r"""(left, right) sides of equations of about `size` nodes at most, the formula's own first.

    Parts of a long formula get names X_1, X_2, and so on; equal parts get one. A part is named per
    position it is taken at only if all terms read the same one; else it is written in full.
    """
    names: dict[Expression, str] = {}
    indices = {term.positions.index for term in formula.terms}
    if len(indices) == 1:
        for term in formula.terms:
            _name_parts(alive(term), size, names)
    if isinstance(formula, Formula):
        names.pop(alive(formula), None)
    is_papers = isinstance(formula, Formula) and _is_papers(formula)
    index = None if is_papers else min(indices, default=None)
    lines = [(left_side(formula), right_side(formula, names))]
    for part, name in names.items():
        others = {node: other for node, other in names.items() if node != part}
        lines.append((name, render(part, others, index)))
    return lines


def _is_papers(formula: Formula) -> bool:
    return formula.reduction in PAPER_REDUCTIONS and not formula.sizes


def _name_parts(expression: Expression, size: int, names: dict[Expression, str]) -> int:
    """Name what is too long, innermost first; the nodes that are left of the expression."""
    if expression in names:
        return 1
    left = 1 + sum(_name_parts(child, size, names) for child in children(expression))
    if left < size:
        return left
    names[expression] = f"X_{{{len(names) + 1}}}"
    return 1
