"""A canonical form of formulas, so that none is evaluated twice.

A term keeps its score: its sign is moved outwards as far as possible, identities and dead branches
are removed, commuting operands sorted, and chains rewritten by every equality that is exact with
the guards. Any other formula keeps its ranking: factors are sorted, equal ones merged, signs pulled
out; what stands around the whole and keeps its order goes: a root, square or logarithm of what is
never negative, a common scale of all exponents, an inverse, which turns the sign, and constants
that multiply the whole or are added to it.
Formulas with the same key have the same score or ranking; the converse need not hold.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from primitives.errors import FormulaError
from primitives.expressions import Apply, Combine, Expression, Leaf, depth, drop_dead
from primitives.facts import NO_NAMES, Meeting, Names, facts, keeps_sign, meeting, range_of_base
from primitives.formula import (
    MAX_DEPTH,
    Atom,
    Base,
    Column,
    Constant,
    Formula,
    Outer,
    Power,
    Sum,
    Term,
    add,
    chains,
    summands,
)
from primitives.guards import INVERSE_FLOOR
from primitives.outer import OUTER
from primitives.properties import (
    NON_NEGATIVE,
    NON_POSITIVE,
    Blind,
    Interval,
    Kind,
    Symmetry,
    on_change,
)
from primitives.registry import get_binary, get_unary
from primitives.rewrites import rewrites

Signed = tuple[int, Expression]
_LARGEST_EXPONENT = 300  # of two: what constants become one within
_ZERO, _ONE = Interval(0.0, 0.0), Interval(1.0, 1.0)


def canonical(formula: Formula, positive: Names = NO_NAMES) -> Formula:
    """The formula in canonical form; `positive` names columns known to be above zero.

    A single term keeps its score, every other formula its ranking.
    """
    if formula.is_term:
        sign, term = canonical_term(formula.term)
        return Formula.of_base(term, formula.sign * sign)
    value = ranking(as_product(formula, positive), positive)
    if not value.factors:
        return formula  # constant: pruning says so
    try:
        return value.formula(positive)
    except FormulaError:  # deeper than allowed
        return formula


def key(formula: Formula) -> str:
    """A text that is equal for two formulas only if their scores or rankings are."""
    return str(canonical(formula))


def canonical_term(term: Term) -> tuple[int, Term]:
    """(sign, term) of the same score."""
    expression = drop_dead(term.expression)
    if expression is None:
        raise FormulaError(f"every branch of {term} is disconnected; connect one")
    sign, core = _top(expression)
    if depth(core) > MAX_DEPTH:  # a rewrite can add a level; then the term is left unchanged
        sign, core = 1, expression
    return sign, Term(term.reduction, core)


def product_of(
    factors: Iterable[tuple[Atom, Fraction]], positive: Names = NO_NAMES, ranked: bool = False
) -> Formula | None:
    """The product of powers of magnitudes; None if every factor cancels.

    With `ranked` it is the simplest product of the same ranking, its sign included.
    """
    value = _merged(1, (Factor(base, exponent) for base, exponent in factors))
    value = ranking(value, positive) if ranked else value
    return value.formula(positive) if value.factors else None


def canonical_part(expression: Expression) -> Signed:
    """(sign, core) of an expression that stands inside a formula, without dead branches."""
    return _anywhere(expression)


def _top(expression: Expression) -> Signed:
    """Canonical form where only the mean is taken next: sums split, and `mean` is redundant."""
    if isinstance(expression, Apply):
        if expression.operation == "neg":
            sign, core = _top(expression.operand)
            return -sign, core
        sign, core = _anywhere(expression)
        again = _strip_mean(core)
        if again is core and not isinstance(core, Combine):
            return sign, core
        outer, core = _top(again)
        return sign * outer, core
    if isinstance(expression, Leaf):
        return 1, expression
    if get_binary(expression.operation).is_linear:
        return _sum(expression, _top(expression.left), _top(expression.right), True)
    left, right = _anywhere(expression.left), _anywhere(expression.right)
    return _product(expression, left, right, True)


def _anywhere(expression: Expression) -> Signed:
    """Canonical form inside another operation."""
    if isinstance(expression, Leaf):
        return 1, expression
    if isinstance(expression, Apply):
        return _apply(expression.operation, *_anywhere(expression.operand))
    left, right = _anywhere(expression.left), _anywhere(expression.right)
    if get_binary(expression.operation).is_linear:
        return _sum(expression, left, right, False)
    return _product(expression, left, right, False)


def _apply(operation: str, sign: int, core: Expression) -> Signed:
    primitive = get_unary(operation)
    if operation == "neg":
        return -sign, core
    outer = 1
    if sign < 0:
        symmetry = primitive.traits.symmetry
        # 1/x is odd except at zero, where the guard takes the positive side.
        may_be_zero = _ZERO in facts(core).interval
        if symmetry is Symmetry.ODD and not (primitive.traits.jumps_at_zero and may_be_zero):
            outer = -1
        elif symmetry is not Symmetry.EVEN:
            core = Apply("neg", core)
    expression = Apply(operation, core)
    for rewrite in rewrites(expression):
        if rewrite.is_exact and rewrite.result is not None:
            inner, core = _anywhere(rewrite.result)
            return outer * inner, core
    return outer, expression


def _sum(node: Combine, left: Signed, right: Signed, at_top: bool) -> Signed:
    """add and sub as one: a sum or difference in sorted order, with the sign outside."""
    first_sign, first = left
    second_sign, second = right[0] * (-1 if node.operation == "sub" else 1), right[1]
    if node.operation not in ("add", "sub"):
        return 1, Combine(node.operation, _signed(left), _signed(right))
    if at_top:
        if _adds_nothing(second):
            return first_sign, first
        if _adds_nothing(first):
            return second_sign, second
    if str(second) < str(first):
        first_sign, first, second_sign, second = second_sign, second, first_sign, first
    same = first_sign == second_sign
    return first_sign, Combine("add" if same else "sub", first, second)


def _product(node: Combine, left: Signed, right: Signed, at_top: bool) -> Signed:
    """mul and matmul; they are equal unless both operands are aligned matrices."""
    if node.operation not in ("mul", "matmul"):
        return 1, Combine(node.operation, _signed(left), _signed(right))
    sign, a, b = left[0] * right[0], left[1], right[1]
    how = meeting(facts(a), facts(b), get_binary(node.operation))
    if how is Meeting.MEANS:
        first, second = sorted((_strip_mean(a), _strip_mean(b)), key=str)
        return sign, Combine("mul", first, second)
    if how is not Meeting.SCALAR:
        if node.operation == "mul" and str(b) < str(a):
            a, b = b, a
        return sign, Combine(node.operation, a, b)
    if at_top:
        outer, core = _scalar_product(a, b)
        return sign * outer, core
    first, second = sorted((a, b), key=str)
    return sign, Combine("mul", first, second)


def _scalar_product(a: Expression, b: Expression) -> Signed:
    """A product with a scalar under the final mean: mean(s·M) = s·mean(M)."""
    if facts(a).interval == _ONE:
        return _top(b)
    if facts(b).interval == _ONE:
        return _top(a)
    first, second = sorted((_strip_mean(a), _strip_mean(b)), key=str)
    if Kind.SCALAR not in (facts(first).kind, facts(second).kind):
        second = Apply("mean", second)
    return 1, Combine("mul", first, second)


def _signed(value: Signed) -> Expression:
    return value[1] if value[0] > 0 else Apply("neg", value[1])


def _strip_mean(expression: Expression) -> Expression:
    """The operand of a mean that is redundant because another mean follows."""
    while isinstance(expression, Apply) and expression.operation == "mean":
        expression = expression.operand
    return expression


def _adds_nothing(expression: Expression) -> bool:
    """Whether the expression's mean is zero for all tensors."""
    about = facts(expression)
    return about.interval == _ZERO or dict(about.steady).get("mean") == 0.0


@dataclass(frozen=True, slots=True)
class Factor:
    """|base| to an exponent, times the base's sign if it `is_odd`."""

    base: Base
    exponent: Fraction = Fraction(1)
    is_odd: bool = False


@dataclass(frozen=True, slots=True)
class Product:
    """sign times the factors, which are of distinct bases and sorted by the bases' text.

    Signs are apart from magnitudes, so that products commute, equal bases merge and a base meets
    its inverse. A product is exact: as a formula it has the value it was made from, wherever
    that is defined.
    """

    sign: int
    factors: tuple[Factor, ...]

    @property
    def is_magnitude(self) -> bool:
        """True if the product without its sign is never negative."""
        return not any(factor.is_odd for factor in self.factors)

    def raised(self, exponent: Fraction) -> Product:
        """The product to an odd power; or |product| to any."""
        if exponent == 1:
            return self
        factors = (Factor(f.base, f.exponent * exponent, f.is_odd) for f in self.factors)
        return Product(self.sign, tuple(f for f in factors if f.exponent or f.is_odd))

    def magnitude(self) -> Product:
        """The product without its sign and those of its bases."""
        return _merged(1, (Factor(f.base, f.exponent) for f in self.factors))

    def formula(self, positive: Names = NO_NAMES) -> Formula:
        """The product as a formula, with the fewest operations per factor; it is not empty."""
        sign, exponents = self.sign, dict[Base, Fraction]()
        for factor in self.factors:
            outer, powers = _powers(factor, positive)
            sign *= outer
            for power in powers:
                exponents[power.base] = exponents.get(power.base, Fraction(0)) + power.exponent
        return Formula(sign, tuple(Power(base, exponent) for base, exponent in exponents.items()))


def of_base(base: Base, positive: Names = NO_NAMES) -> Product:
    """The base itself as a product; a sign that is known goes in front."""
    interval = range_of_base(base, positive)
    if interval in NON_NEGATIVE:
        return Product(1, (Factor(base),))
    if interval in NON_POSITIVE:
        return Product(-1, (Factor(base),))
    return Product(1, (Factor(base, is_odd=True),))


def _merged(sign: int, factors: Iterable[Factor]) -> Product:
    """The factors multiplied: one per base, none where nothing is left of it."""
    merged: dict[str, Factor] = {}
    constants: list[Factor] = []
    for factor in factors:
        if isinstance(factor.base, Constant):
            constants.append(factor)
            continue
        text = str(factor.base)
        met = merged.get(text)
        merged[text] = (
            factor
            if met is None
            else Factor(met.base, met.exponent + factor.exponent, met.is_odd != factor.is_odd)
        )
    if constants:
        constants = _one_constant(constants)
        merged |= {f"{c.base} {c.exponent}": c for c in constants}
    left = (merged[text] for text in sorted(merged))
    return Product(sign, tuple(f for f in left if f.exponent or f.is_odd))


def _one_constant(constants: list[Factor]) -> list[Factor]:
    """The constants multiplied, none if that is 1; as they are where the product is no float."""
    logarithm = sum(math.log2(float(str(c.base))) * float(c.exponent) for c in constants)
    if abs(logarithm) > _LARGEST_EXPONENT:
        return constants
    weight = math.prod(float(str(c.base)) ** float(c.exponent) for c in constants)
    return [] if weight == 1 else [Factor(Constant(weight))]


def _times(products: Iterable[Product]) -> Product:
    """All the products multiplied."""
    sign = 1
    factors: list[Factor] = []
    for product in products:
        sign *= product.sign
        factors.extend(product.factors)
    return _merged(sign, factors)


def _powers(factor: Factor, positive: Names) -> tuple[int, list[Power]]:
    """The factor as powers, and the sign that the base brings with it if it is never positive."""
    base, exponent = factor.base, factor.exponent
    if factor.is_odd:  # sgn(x)·|x|^p is x·|x|^(p-1), and 1/x is its own case
        if exponent in (1, -1):
            return 1, _plain(base, exponent)
        return 1, [*_plain(base, Fraction(1)), *_of_magnitude(base, exponent - 1)]
    interval = range_of_base(base, positive)
    if interval in NON_NEGATIVE:
        return 1, _plain(base, exponent)
    if interval in NON_POSITIVE and abs(exponent) == 1:
        return -1, _plain(base, exponent)
    return 1, _of_magnitude(base, exponent)


def _of_magnitude(base: Base, exponent: Fraction) -> list[Power]:
    """|base| to the exponent; squaring needs no |...| inside it."""
    even = 2 * int(exponent / 2)  # towards zero
    powers = _plain(base, Fraction(even)) if even else []
    size = Outer("abs", Formula.of_base(base))
    return powers if exponent == even else [*powers, Power(size, exponent - even)]


def _plain(base: Base, exponent: Fraction) -> list[Power]:
    """The base to the exponent; a root of one power is that power."""
    if isinstance(base, Outer):
        opened = base.operand.apply(base.operation)
        return [Power(power.base, power.exponent * exponent) for power in opened.powers]
    return [Power(base, exponent)]


@lru_cache(maxsize=8192)
def as_product(formula: Formula, positive: Names = NO_NAMES) -> Product:
    """The formula as a product of powers of canonical bases, of the same value."""
    sign = Product(formula.sign, ())
    return _times([sign, *(_of_power(power, positive) for power in formula.powers)])


def _of_power(power: Power, positive: Names) -> Product:
    base = _of_base(power.base, positive)
    if power.exponent == 1 or (base.sign > 0 and base.is_magnitude and base.factors):
        return base.raised(power.exponent)
    made: list[Product] = []
    for chain in chains(power.exponent):
        value, written = base, Formula.of_base(power.base)
        for operation in chain:
            value = _of_outer(operation, value, written, positive)
            written = written.apply(operation)
        made.append(value)
    return _times(made)


def _of_base(base: Base, positive: Names) -> Product:
    if isinstance(base, Term):
        return _of_term(base)
    if isinstance(base, Column | Constant):
        return of_base(base, positive)
    if isinstance(base, Sum):
        return _of_sum(base, positive)
    return _of_outer(base.operation, as_product(base.operand, positive), base.operand, positive)


def _of_outer(operation: str, inside: Product, written: Formula, positive: Names) -> Product:
    """The outer operation on what is `inside` as a product, and `written` as a formula."""
    exponent = OUTER[operation].exponent
    if inside.factors:
        if operation == "abs":
            return inside.magnitude()
        if exponent is not None and exponent.denominator == 1:
            return (inside if exponent.numerator % 2 else inside.magnitude()).raised(exponent)
        if exponent is not None and inside.sign > 0 and inside.is_magnitude:
            return inside.raised(exponent)
    # A logarithm, or a root that may not be defined: a base of its own.
    operand = inside.formula(positive) if inside.factors else written
    return of_base(Outer(operation, operand if operand.sign > 0 else written), positive)


def _of_sum(total: Sum, positive: Names) -> Product:
    """All summands that have one sign together, the first one's in front."""
    parts: list[Formula] = []
    for part in total.parts:
        value = as_product(part, positive)
        parts.extend(summands(value.formula(positive) if value.factors else part))
    parts.sort(key=lambda part: (not part.atoms, str(part.with_sign(1))))  # constants last
    front = parts[0].sign
    ordered = [part for sign in (front, -front) for part in parts if part.sign == sign]
    value = of_base(Sum(tuple(part.with_sign(front * part.sign) for part in ordered)), positive)
    return Product(value.sign * front, value.factors)


@lru_cache(maxsize=65536)
def _of_term(term: Term) -> Product:
    """A term; powers of a single number per block come out of a reduction of one position."""
    sign, reduced = canonical_term(term)
    inside = reduced.expression
    if term.positions.is_single and isinstance(inside, Apply) and inside.operation in OUTER:
        exponent, about = OUTER[inside.operation].exponent, facts(inside.operand)
        least = INVERSE_FLOOR if inside.operation == "inverse" else 0.0
        if exponent is not None and about.group is None and about.interval.low >= least:
            below = _of_term(Term(term.reduction, inside.operand))
            return Product(sign * below.sign, below.raised(exponent).factors)
    value = of_base(reduced)
    return Product(value.sign * sign, value.factors)


on_change(_of_term.cache_clear)
on_change(as_product.cache_clear)


def ranking(value: Product, positive: Names = NO_NAMES) -> Product:
    """A product of the same ranking, without what only stretches the scale of the whole."""
    if any(isinstance(factor.base, Constant) for factor in value.factors):
        left = (f for f in value.factors if not isinstance(f.base, Constant))
        return ranking(Product(value.sign, tuple(left)), positive)
    if not value.factors:
        return value
    shifted = _without_shift(value, positive)
    if shifted is not None:
        return ranking(shifted, positive)
    if value.is_magnitude:
        value = _rescaled(value)
    opened = _without_logarithm(value, positive) if len(value.factors) == 1 else None
    return value if opened is None else ranking(opened, positive)


def _rescaled(value: Product) -> Product:
    """Exponents in lowest form: no common factor, the largest from 1 to below 2, sum positive."""
    exponents = [factor.exponent for factor in value.factors]
    common = math.lcm(*(e.denominator for e in exponents))
    shared = Fraction(math.gcd(*(int(e * common) for e in exponents)), common)
    largest = int(max(map(abs, exponents)) / shared)
    scale = 1 / (shared * 2 ** (largest.bit_length() - 1))
    is_reversed = (sum(exponents), exponents[0]) < (0, 0)
    raised = value.raised(-scale if is_reversed else scale)
    return Product(-value.sign if is_reversed else value.sign, raised.factors)


def _without_shift(value: Product, positive: Names) -> Product | None:
    """The product without the constants that it adds, if it is a sum and adds some."""
    first = value.factors[0]
    if len(value.factors) > 1 or first.exponent != 1 or not isinstance(first.base, Sum):
        return None
    interval = range_of_base(first.base, positive)
    parts = [part for part in first.base.parts if part.atoms]
    if len(parts) == len(first.base.parts) or not (first.is_odd or keeps_sign(interval)):
        return None
    if not parts:
        return Product(value.sign, ())
    is_mirrored = not first.is_odd and interval not in NON_NEGATIVE  # |x| where x <= 0
    rest = as_product(add(parts), positive)
    return Product(rest.sign * (-value.sign if is_mirrored else value.sign), rest.factors)


def _without_logarithm(value: Product, positive: Names) -> Product | None:
    """What an increasing operation is taken of, if the whole is one that is not folded at zero."""
    (factor,) = value.factors
    base = factor.base
    if not isinstance(base, Outer) or factor.exponent != 1 or not OUTER[base.operation].increases:
        return None
    inside = as_product(base.operand, positive)
    if OUTER[base.operation].is_odd:  # its magnitude grows with |x|
        inside = inside if factor.is_odd else inside.magnitude()
        return Product(value.sign * inside.sign, inside.factors) if inside.factors else None
    interval = range_of_base(base, positive)
    if not (factor.is_odd or keeps_sign(interval)):
        return None
    is_cut = OUTER[base.operation].blind is Blind.NEGATIVE
    if is_cut and (inside.sign < 0 or not inside.is_magnitude):
        return None
    is_mirrored = not factor.is_odd and interval not in NON_NEGATIVE  # |log x| where log x <= 0
    sign = inside.sign * (-value.sign if is_mirrored else value.sign)
    return Product(sign, inside.factors)
