r"""Terms and scores as LaTeX: products of powers, with what is divided by in a denominator.

\frac{\left(\sum_{\ell<L} \left\| \theta_{J,\ell} \right\|_1\right) P_L^{1/2}}{...}
"""

from __future__ import annotations

from fractions import Fraction

from primitives.expression_latex import Names, alive, render
from primitives.expressions import Combine, Expression, Leaf
from primitives.formula import Formula
from primitives.score import SIGNED_LOG, Column, Join, ScoreTree, Transform

_STEPS = {"sqrt": Fraction(1, 2), "square": Fraction(2), "inverse": Fraction(-1)}
Power = tuple[ScoreTree, Fraction]


def tree_latex(tree: ScoreTree, names: Names) -> str:
    """The tree; parts of expressions that have names appear by them."""
    if isinstance(tree, Formula):
        return term_latex(tree, names)
    if isinstance(tree, Column):
        return column_latex(tree.name)
    if isinstance(tree, Join) and tree.operation != "mul":
        sign = " + " if tree.operation == "add" else " - "
        *rest, last = tree.operands
        parts = [_summand(part, names, False) for part in rest]
        return sign.join([*parts, _summand(last, names, True)])
    if isinstance(tree, Transform) and tree.operation in ("abs", "log"):
        inside = tree_latex(tree.operand, names)
        return rf"\left| {inside} \right|" if tree.operation == "abs" else _log(inside)
    if isinstance(tree, Transform) and tree.operation == SIGNED_LOG:
        inside = tree_latex(tree.operand, names)
        size = _log(rf"1 + \left| {inside} \right|")
        return rf"\operatorname{{sgn}}\left( {inside} \right) \cdot {size}"
    return _fraction(tree, names)


def term_latex(term: Formula, names: Names) -> str:
    """A reduction over positions, with the position as an index of every statistic and size."""
    facts, expression = term.positions, alive(term)
    body = render(expression, names, facts.index)
    if facts.sign and isinstance(expression, Combine) and expression not in names:
        body = rf"\left({body}\right)"
    return f"{facts.sign}{body}"


def column_latex(name: str) -> str:
    r"""The name upright; braces keep a hyphen from being set as a minus."""
    return rf"\mathrm{{{name.replace('-', '{-}').replace('_', chr(92) + '_')}}}"


def _log(inside: str) -> str:
    return rf"\log\left( {inside} \right)"


def _summand(tree: ScoreTree, names: Names, is_last: bool) -> str:
    """In brackets if it is a sum itself, or a sum over blocks that would run on."""
    text = tree_latex(tree, names)
    is_sum = isinstance(tree, Join) and tree.operation != "mul"
    runs_on = isinstance(tree, Formula) and bool(tree.positions.sign) and not is_last
    return rf"\left({text}\right)" if is_sum or runs_on or text.startswith("-") else text


def _fraction(tree: ScoreTree, names: Names) -> str:
    powers = _merged(_powers(tree, Fraction(1)))
    above = [(base, exponent) for base, exponent in powers if exponent > 0]
    below = [(base, -exponent) for base, exponent in powers if exponent < 0]
    numerator = _factors(above, names) if above else "1"
    return rf"\frac{{{numerator}}}{{{_factors(below, names)}}}" if below else numerator


def _powers(tree: ScoreTree, exponent: Fraction) -> list[Power]:
    """The tree as written, as a product of powers."""
    if isinstance(tree, Join) and tree.operation == "mul":
        return [power for operand in tree.operands for power in _powers(operand, exponent)]
    if not isinstance(tree, Transform) or tree.operation not in _STEPS:
        return [(tree, exponent)]
    if tree.operation == "square" and exponent.denominator > 1:
        return [(tree, exponent)]  # (x^2)^(1/2) is |x|: a square under a root keeps its brackets
    return _powers(tree.operand, exponent * _STEPS[tree.operation])


def _merged(powers: list[Power]) -> list[Power]:
    """One power for each column: x sqrt(x) is x^(3/2)."""
    found: list[Power] = []
    places: dict[ScoreTree, int] = {}
    for base, exponent in powers:
        if base in places:
            at = places[base]
            found[at] = (base, found[at][1] + exponent)
            continue
        if isinstance(base, Column) or (isinstance(base, Transform) and base.operation == "abs"):
            places[base] = len(found)
        found.append((base, exponent))
    return [power for power in found if power[1]]


def _factors(powers: list[Power], names: Names) -> str:
    return r" \cdot ".join(_factor(*power, len(powers) == 1, names) for power in powers)


def _factor(base: ScoreTree, exponent: Fraction, is_alone: bool, names: Names) -> str:
    if isinstance(base, Transform) and base.operation == "square":  # under a root
        text, needs_brackets = _factor(base.operand, Fraction(2), True, names), True
    else:
        text = tree_latex(base, names)
        needs_brackets = not _stands_alone(base, names)
    if exponent == 1:
        return text if is_alone or not needs_brackets else rf"\left({text}\right)"
    shown = rf"\left({text}\right)" if needs_brackets else text
    return f"{shown}^{{{exponent}}}"


def _stands_alone(tree: ScoreTree, names: Names) -> bool:
    """True if an exponent or a neighbour needs no brackets around it."""
    if isinstance(tree, Column):
        return True
    if isinstance(tree, Formula):
        expression: Expression = alive(tree)
        is_short = isinstance(expression, Leaf) or expression in names
        return is_short and not tree.positions.sign
    return isinstance(tree, Transform) and tree.operation == "abs"
