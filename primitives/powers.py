"""Products of powers: what a score is apart from sums and logarithms.

A factor is sgn(x)^odd · |x|^exponent of a base x; multiplying adds exponents, so that products
commute, equal bases merge and a base meets its inverse. A product is exact: turned back into a
tree it has the value it was made from, wherever that is defined.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from primitives.properties import NON_NEGATIVE, NON_POSITIVE
from primitives.ranges import NO_NAMES, Names, range_of
from primitives.score import Join, ScoreTree, Transform

ONE, HALF = Fraction(1), Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class Power:
    """The exponent of |base|, and whether the base's sign is a factor too."""

    base: ScoreTree
    exponent: Fraction = ONE
    is_odd: bool = False


@dataclass(frozen=True, slots=True)
class Product:
    """sign times the powers, which are of distinct bases and sorted by the bases' text."""

    sign: int
    powers: tuple[Power, ...]

    @property
    def is_magnitude(self) -> bool:
        """True if the product without its sign is never negative."""
        return not any(power.is_odd for power in self.powers)

    @property
    def is_empty(self) -> bool:
        """True if every factor cancelled."""
        return not self.powers

    def raised(self, exponent: Fraction) -> Product:
        """The product to an odd power; or |product| to any."""
        powers = (Power(p.base, p.exponent * exponent, p.is_odd) for p in self.powers)
        return Product(self.sign, tuple(powers))

    def magnitude(self) -> Product:
        """The product without its sign and those of its bases."""
        return product(1, (Power(p.base, p.exponent) for p in self.powers))


def of_base(base: ScoreTree, positive: Names = NO_NAMES) -> Product:
    """The base itself as a product; a sign that is known goes in front."""
    known = range_of(base, positive)
    if known in NON_NEGATIVE:
        return Product(1, (Power(base),))
    if known in NON_POSITIVE:
        return Product(-1, (Power(base),))
    return Product(1, (Power(base, is_odd=True),))


def product(sign: int, powers: Iterable[Power]) -> Product:
    """The powers multiplied: one power per base, none where nothing is left of it."""
    merged: dict[str, Power] = {}
    for power in powers:
        text = str(power.base)
        known = merged.get(text, Power(power.base, Fraction(0)))
        merged[text] = Power(
            power.base, known.exponent + power.exponent, known.is_odd != power.is_odd
        )
    left = (merged[text] for text in sorted(merged))
    return Product(sign, tuple(p for p in left if p.exponent != 0 or p.is_odd))


def times(products: Iterable[Product]) -> Product:
    """All the products multiplied."""
    sign = 1
    powers: list[Power] = []
    for one in products:
        sign *= one.sign
        powers.extend(one.powers)
    return product(sign, powers)


def tree_of(value: Product, positive: Names = NO_NAMES) -> tuple[int, ScoreTree]:
    """(sign, tree) of a product that is not empty, with the fewest operations per factor."""
    sign = value.sign
    factors: list[ScoreTree] = []
    for power in value.powers:
        outer, trees = _factors(power, positive)
        sign *= outer
        factors.extend(trees)
    return sign, factors[0] if len(factors) == 1 else Join("mul", tuple(factors))


def _factors(power: Power, positive: Names) -> tuple[int, list[ScoreTree]]:
    """The power as factors, and the sign that the base brings with it if it is never positive."""
    base, exponent = power.base, power.exponent
    known = range_of(base, positive)
    if power.is_odd:  # sgn(x)·|x|^p is x·|x|^(p-1), and 1/x is its own case
        if exponent == -1:
            return 1, [Transform("inverse", base)]
        rest = Power(base, exponent - 1)
        return 1, [base, *(_factors(rest, positive)[1] if rest.exponent else [])]
    if known in NON_NEGATIVE:
        return 1, [_nested(base, base, step) for step in _steps(exponent)]
    if known in NON_POSITIVE and abs(exponent) == 1:
        return -1, [_nested(base, base, exponent)]
    return 1, [_nested(base, Transform("abs", base), step) for step in _steps(exponent)]


def _steps(exponent: Fraction) -> list[Fraction]:
    """The exponent as a sum of powers of two of one sign, the largest first: 3/4 = 1/2 + 1/4."""
    sign = 1 if exponent > 0 else -1
    numerator, denominator = abs(exponent.numerator), exponent.denominator
    bits = range(numerator.bit_length() - 1, -1, -1)
    return [sign * Fraction(1 << bit, denominator) for bit in bits if numerator >> bit & 1]


def _nested(base: ScoreTree, magnitude: ScoreTree, step: Fraction) -> ScoreTree:
    """|base| to a power of two; squaring needs no |...| inside it."""
    size = abs(step)
    made = base if size > 1 else magnitude
    while size != 1:
        made = Transform("square" if size > 1 else "sqrt", made)
        size = size / 2 if size > 1 else size * 2
    return made if step > 0 else Transform("inverse", made)
