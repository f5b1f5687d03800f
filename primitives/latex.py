r"""Formulas as LaTeX, from the templates that the primitives and outer operations declare.

The mean that ends every block is left unwritten, as in the paper's equation 2. A formula of
the paper's form is written in the paper's notation (blocks 1 to N); everything beyond it names the
position \ell, because that is what it is about. Products are fractions of powers.

\frac{\left(\sum_{\ell<L} \left\| \theta_{J,\ell} \right\|_1\right) P_L^{1/2}}{...}
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from primitives.errors import FormulaError
from primitives.expressions import Apply, Combine, Expression, Leaf, children, drop_dead
from primitives.formula import Base, Column, Constant, Formula, Outer, Sum, Term
from primitives.outer import OUTER
from primitives.registry import get_binary, get_unary
from primitives.statistics import SIZES

Names = Mapping[Expression, str]
_BARS = (r"\left|", r"\left\|")
_REDUCTIONS = {"sum": r"\sum_{i=1}^{N}", "mean": r"\frac{1}{N}\sum_{i=1}^{N}"}


def to_latex(formula: Formula) -> str:
    r"""The formula as an equation, without its math delimiters.

    >>> from primitives.parser import parse
    >>> to_latex(parse("-mean(square(W))"))
    '\\varphi(\\theta_W) = -\\frac{1}{N}\\sum_{i=1}^{N} \\left( \\left(\\theta_W\\right)^2 \\right)'
    >>> right_side(parse("mul(depth, inverse(sqrt(inner(params))))"))
    '\\frac{\\mathrm{depth}}{\\left(\\sum_{\\ell<L} P_\\ell\\right)^{1/2}}'
    """
    return f"{left_side(formula)} = {right_side(formula)}"


def left_side(formula: Formula) -> str:
    r"""What stands left of the equation's sign: a name, and what the value depends on."""
    for term in formula.terms:
        alive(term)
    leaves = [leaf_latex(Leaf(name), None) for name in (*formula.statistics, *formula.sizes)]
    arguments = ", ".join([*leaves, *map(column_latex, formula.columns)])
    return rf"\varphi({arguments})"


def right_side(formula: Formula, names: Names | None = None) -> str:
    r"""What stands right of the equation's sign; parts that have names appear by them."""
    sign = "-" if formula.sign < 0 else ""
    if formula.is_papers:
        term = formula.term
        body = render(alive(term), names or {})
        return rf"{sign}{_REDUCTIONS[term.reduction]} \left( {body} \right)"
    text = _number(formula, names or {})
    needs_brackets = bool(sign) and (text.startswith("-") or _as_sum(formula) is not None)
    return rf"{sign}\left({text}\right)" if needs_brackets else f"{sign}{text}"


def in_parts(formula: Formula, size: int) -> list[tuple[str, str]]:
    r"""(left, right) sides of equations of about `size` nodes at most, the formula's own first.

    Parts of a long formula get names X_1, X_2, and so on; equal parts get one. A part is named per
    position it is taken at only if all terms read the same one; else it is written in full.
    """
    names: dict[Expression, str] = {}
    indices = {term.positions.index for term in formula.terms}
    if len(indices) == 1:
        for term in formula.terms:
            _name_parts(alive(term), size, names)
    if formula.is_term:
        names.pop(alive(formula.term), None)
    index = None if formula.is_papers else min(indices, default=None)
    lines = [(left_side(formula), right_side(formula, names))]
    for part, name in names.items():
        others = {node: other for node, other in names.items() if node != part}
        lines.append((name, render(part, others, index)))
    return lines


def column_latex(name: str) -> str:
    r"""The name upright; braces keep a hyphen from being set as a minus."""
    return rf"\mathrm{{{name.replace('-', '{-}').replace('_', chr(92) + '_')}}}"


def term_latex(term: Term, names: Names) -> str:
    """A reduction over positions, with the position as an index of every statistic and size."""
    facts, expression = term.positions, alive(term)
    body = render(expression, names, facts.index)
    if facts.sign and isinstance(expression, Combine) and expression not in names:
        body = rf"\left({body}\right)"
    return f"{facts.sign}{body}"


def _number(formula: Formula, names: Names) -> str:
    """The formula without its sign: a fraction of powers."""
    powers = _powers(formula, Fraction(1))
    above = [(base, exponent) for base, exponent in powers if exponent > 0]
    below = [(base, -exponent) for base, exponent in powers if exponent < 0]
    numerator = _factors(above, names) if above else "1"
    return rf"\frac{{{numerator}}}{{{_factors(below, names)}}}" if below else numerator


def _powers(formula: Formula, exponent: Fraction) -> list[tuple[Base | Formula, Fraction]]:
    """The formula to the exponent as a product of powers, roots of products taken apart."""
    powers: list[tuple[Base | Formula, Fraction]] = []
    for power in formula.powers:
        base, raised = power.base, power.exponent * exponent
        of_root = OUTER[base.operation].exponent if isinstance(base, Outer) else None
        if exponent.denominator > 1 and power.exponent.numerator % 2 == 0:
            # (x^2)^(1/2) is |x|: a square under a root keeps its brackets
            powers.append((Formula(1, (power,)), exponent))
        elif isinstance(base, Outer) and of_root is not None:
            powers += _powers(base.operand, raised * of_root)
        else:
            powers.append((base, raised))
    return [(base, of) for base, of in powers if of]


def _factors(powers: list[tuple[Base | Formula, Fraction]], names: Names) -> str:
    return r" \cdot ".join(_factor(*power, len(powers) == 1, names) for power in powers)


def _factor(base: Base | Formula, exponent: Fraction, is_alone: bool, names: Names) -> str:
    text = _base(base, names)
    stands_alone = _stands_alone(base, names)
    if exponent == 1:
        return text if is_alone or stands_alone else rf"\left({text}\right)"
    shown = text if stands_alone else rf"\left({text}\right)"
    return f"{shown}^{{{exponent}}}"


def _base(base: Base | Formula, names: Names) -> str:
    if isinstance(base, Term):
        return term_latex(base, names)
    if isinstance(base, Column):
        return column_latex(base.name)
    if isinstance(base, Constant):
        digits, _, power = base.text.partition("e")
        return rf"{digits} \cdot 10^{{{int(power)}}}" if power else digits
    if isinstance(base, Formula):
        return _number(base, names)
    if isinstance(base, Outer):
        template = OUTER[base.operation].latex or "{x}"
        return template.replace("{x}", _number(base.operand, names))
    plus, minus = base.signed(1), base.signed(-1)
    if not minus:
        return _added(plus, True, names)
    before, after = _added(plus, False, names), _added(minus, True, names)
    return " - ".join(
        rf"\left({text}\right)" if len(parts) > 1 else text
        for parts, text in ((plus, before), (minus, after))
    )


def _added(parts: list[Formula], is_last: bool, names: Names) -> str:
    """The sum of the parts' magnitudes; `is_last`: nothing follows it."""
    texts = [_summand(part, names, is_last and part is parts[-1]) for part in parts]
    if len(parts) > 1 and not is_last:  # it will stand in brackets
        texts[-1] = _summand(parts[-1], names, True)
    return " + ".join(texts)


def _summand(part: Formula, names: Names, is_last: bool) -> str:
    """In brackets if it is a sum over blocks that would run on."""
    text = _number(part, names)
    runs_on = part.is_term and bool(part.term.positions.sign) and not is_last
    return rf"\left({text}\right)" if runs_on or text.startswith("-") else text


def _as_sum(formula: Formula) -> Sum | None:
    """The sum that the formula is, if it is one."""
    first = formula.powers[0]
    is_plain = len(formula.powers) == 1 and first.exponent == 1
    return first.base if is_plain and isinstance(first.base, Sum) else None


def _stands_alone(base: Base | Formula, names: Names) -> bool:
    """True if an exponent or a neighbour needs no brackets around it."""
    if isinstance(base, Term):
        expression = alive(base)
        is_short = isinstance(expression, Leaf) or expression in names
        return is_short and not base.positions.sign
    if isinstance(base, Outer):
        return (OUTER[base.operation].latex or "").startswith(_BARS)
    return isinstance(base, Column) or (isinstance(base, Constant) and "e" not in base.text)


def alive(term: Term) -> Expression:
    """The expression without its disconnected branches; raises FormulaError if none is left."""
    expression = drop_dead(term.expression)
    if expression is None:
        raise FormulaError(f"every branch of {term} is disconnected; connect one")
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


def _name_parts(expression: Expression, size: int, names: dict[Expression, str]) -> int:
    """Name what is too long, innermost first; the nodes that are left of the expression."""
    if expression in names:
        return 1
    left = 1 + sum(_name_parts(child, size, names) for child in children(expression))
    if left < size:
        return left
    names[expression] = f"X_{{{len(names) + 1}}}"
    return 1
