"""One form for all scores of equal ranking, as far as the declared ranges tell.

Factors that commute are sorted, equal ones merged, signs pulled out. What stands around the whole
and keeps its order goes: a root, square or logarithm of what is never negative, a common scale of
all exponents, and an inverse, which turns the sign. So a canonical score ranks as the score it was
made from wherever that is defined; inside it every value is exact.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from primitives.canonical import canonical as canonical_term
from primitives.changes import on_change
from primitives.expressions import Apply
from primitives.facts import facts
from primitives.formula import MAX_DEPTH, Formula
from primitives.guards import INVERSE_FLOOR
from primitives.powers import HALF, Product, of_base, times, tree_of
from primitives.properties import NON_NEGATIVE
from primitives.ranges import NO_NAMES, Names, keeps_sign, range_of
from primitives.score import (
    SIGNED_LOG,
    AnyFormula,
    Column,
    Join,
    ScoreTree,
    Transform,
    signed,
    tree_depth,
)

_EXPONENTS = {"sqrt": HALF, "square": Fraction(2), "inverse": Fraction(-1)}


def canonical(formula: AnyFormula, positive: Names = NO_NAMES) -> AnyFormula:
    """The formula in canonical form; `positive` names columns known to be above zero.

    A single term keeps its score, a `Score` its ranking.
    """
    if isinstance(formula, Formula):
        return canonical_term(formula)
    value = ranking(as_product(formula.tree, positive), positive)
    if value.is_empty:
        return formula  # constant: pruning says so
    sign, tree = tree_of(value, positive)
    if tree_depth(tree) > MAX_DEPTH:
        return formula
    return signed(tree, formula.sign * sign)


def key_up_to_sign(formula: AnyFormula, positive: Names = NO_NAMES) -> str:
    """A text that is equal for two formulas only if they rank alike, or one in reverse."""
    reduced = canonical(formula, positive)
    return str(reduced if reduced.sign > 0 else -reduced)


def as_product(tree: ScoreTree, positive: Names = NO_NAMES) -> Product:
    """The tree as a product of powers of canonical bases, of the same value."""
    if isinstance(tree, Formula):
        return _term(tree)
    if isinstance(tree, Column):
        return of_base(tree, positive)
    if isinstance(tree, Transform):
        return _transform(tree, positive)
    if tree.operation == "mul":
        return times(as_product(operand, positive) for operand in tree.operands)
    return _sum(tree, positive)


def ranking(value: Product, positive: Names = NO_NAMES) -> Product:
    """A product of the same ranking, without what only stretches the scale of the whole."""
    if value.is_empty:
        return value
    if value.is_magnitude:
        value = _rescaled(value)
    opened = _without_logarithm(value, positive) if len(value.powers) == 1 else None
    return value if opened is None else ranking(opened, positive)


def _rescaled(value: Product) -> Product:
    """Exponents in lowest form: no common factor, the largest from 1 to below 2, sum positive."""
    exponents = [power.exponent for power in value.powers]
    common = math.lcm(*(e.denominator for e in exponents))
    shared = Fraction(math.gcd(*(int(e * common) for e in exponents)), common)
    largest = int(max(map(abs, exponents)) / shared)
    scale = 1 / (shared * 2 ** (largest.bit_length() - 1))
    is_reversed = (sum(exponents), exponents[0]) < (0, 0)
    raised = value.raised(-scale if is_reversed else scale)
    return Product(-value.sign if is_reversed else value.sign, raised.powers)


def _without_logarithm(value: Product, positive: Names) -> Product | None:
    """What the logarithm is taken of, if the whole is one that is not folded at zero."""
    power = value.powers[0]
    if not isinstance(power.base, Transform) or power.exponent != 1:
        return None
    if power.base.operation == SIGNED_LOG:  # it grows with its operand, its magnitude with |x|
        inside = as_product(power.base.operand, positive)
        inside = inside if power.is_odd else inside.magnitude()
        return None if inside.is_empty else Product(value.sign * inside.sign, inside.powers)
    if power.base.operation != "log":
        return None
    known = range_of(power.base, positive)
    if not (power.is_odd or keeps_sign(known)):
        return None
    inside = as_product(power.base.operand, positive)
    if inside.sign < 0 or not inside.is_magnitude:
        return None
    is_mirrored = not power.is_odd and known not in NON_NEGATIVE  # |log x| where log x <= 0
    return Product(-value.sign if is_mirrored else value.sign, inside.powers)


@lru_cache(maxsize=65536)
def _term(term: Formula) -> Product:
    """A term; powers of a single number per block come out of a reduction of one position."""
    reduced = canonical_term(term)
    inside = reduced.expression
    if term.positions.is_single and isinstance(inside, Apply) and inside.operation in _EXPONENTS:
        known = facts(inside.operand)
        least = INVERSE_FLOOR if inside.operation == "inverse" else 0.0
        if known.group is None and known.interval.low >= least:
            below = _term(Formula(inside.operand, term.reduction))
            return Product(
                reduced.sign * below.sign, below.raised(_EXPONENTS[inside.operation]).powers
            )
    found = of_base(reduced if reduced.sign > 0 else -reduced)
    return Product(found.sign * reduced.sign, found.powers)


on_change(_term.cache_clear)


def _transform(tree: Transform, positive: Names) -> Product:
    inside = as_product(tree.operand, positive)
    if inside.is_empty:
        return of_base(tree, positive)
    if tree.operation == "abs":
        return inside.magnitude()
    if tree.operation == "square":
        return inside.magnitude().raised(_EXPONENTS["square"])
    if tree.operation == "inverse":
        return inside.raised(_EXPONENTS["inverse"])
    if tree.operation == "sqrt" and inside.sign > 0 and inside.is_magnitude:
        return inside.raised(_EXPONENTS["sqrt"])
    # A logarithm, or a root that may not be defined: a base of its own.
    sign, operand = tree_of(inside, positive)
    return of_base(Transform(tree.operation, operand) if sign > 0 else tree, positive)


def _sum(tree: Join, positive: Names) -> Product:
    """add and sub as one: all summands that have one sign together, the first one's in front."""
    summands = sorted(_summands(tree, 1, positive), key=lambda summand: str(summand[1]))
    front = summands[0][0]
    alike = [part for sign, part in summands if sign == front]
    others = [part for sign, part in summands if sign != front]
    made = Join("sub", (_added(alike), _added(others))) if others else _added(alike)
    found = of_base(made, positive)
    return Product(found.sign * front, found.powers)


def _summands(tree: ScoreTree, sign: int, positive: Names) -> list[tuple[int, ScoreTree]]:
    """(sign, part) of every summand, sums inside sums opened."""
    if isinstance(tree, Join) and tree.operation != "mul":
        signs = (sign, -sign) if tree.operation == "sub" else (sign,) * len(tree.operands)
        parts = zip(signs, tree.operands, strict=True)
        return [found for s, part in parts for found in _summands(part, s, positive)]
    value = as_product(tree, positive)
    if value.is_empty:
        return [(sign, tree)]
    outer, part = tree_of(value, positive)
    if isinstance(part, Join) and part.operation != "mul":  # as after an idle abs
        return _summands(part, sign * outer, positive)
    return [(sign * outer, part)]


def _added(parts: list[ScoreTree]) -> ScoreTree:
    return parts[0] if len(parts) == 1 else Join("add", tuple(parts))
