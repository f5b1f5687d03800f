"""Products of powers of terms: a beam search, and every product of two.

In logarithms a product is a sum, so the correlation of (a product times a term to a power) with the
ranked target is closed form for all of them at once. The best few hundred by it are ranked exactly,
and the best of those make the next beam. Shapes: T terms, n rows, K products.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from lpzero.arrays import BoolArray, FloatArray, IntArray
from lpzero.judgement.correlation import spearman_many
from lpzero.scores.terms import TermTable
from primitives.powers import Power, product, tree_of
from primitives.score import AnyFormula, signed

EXPONENTS = (Fraction(1, 2), Fraction(1), Fraction(2), Fraction(-1, 2), Fraction(-1), Fraction(-2))
# Columns are few: finer exponents, which the language has for them, are affordable.
COLUMN_EXPONENTS = tuple(
    Fraction(sign * numerator, 4) for sign in (1, -1) for numerator in (1, 2, 3, 4, 6, 8)
)
MOST_FACTORS = 4
_FLAT = 1e-12  # of the variance of logarithms: a product that varies less is constant


@dataclass(frozen=True, slots=True)
class Factors:
    """A product: indices of terms with their exponents, in the order they were added."""

    powers: tuple[tuple[int, Fraction], ...]

    def times(self, term: int, exponent: Fraction) -> Factors:
        return Factors((*self.powers, (term, exponent)))

    def logs(self, table: FloatArray) -> FloatArray:
        """The logarithm of the product (n,) from those of the terms (T, n)."""
        total: FloatArray = sum(
            (float(exponent) * table[term] for term, exponent in self.powers),
            start=np.zeros(table.shape[1]),
        )
        return total

    def formula(self, terms: TermTable, sign: int = 1) -> AnyFormula:
        """The product as a formula of the language."""
        bases = (Power(terms.terms[term], exponent) for term, exponent in self.powers)
        found, tree = tree_of(product(1, bases), terms.positive)
        return signed(tree, found * sign)


@dataclass(frozen=True, slots=True)
class Found:
    """A product with its rho on the rows searched, the sign that makes it positive."""

    factors: Factors
    rho: float
    sign: int


@dataclass(frozen=True, slots=True)
class Beam:
    """How wide the search is: products kept per step, how many are ranked exactly, exponents.

    With `keeps_scales` products of one ranking are kept to every scale (x y and x^2 y^2), because
    what they are extended to differs: worth its cost where there are few terms.
    """

    factors: int = MOST_FACTORS
    width: int = 40
    exact: int = 400
    exponents: tuple[Fraction, ...] = EXPONENTS
    keeps_scales: bool = False


def of_columns(factors: int, exponents: tuple[Fraction, ...] = COLUMN_EXPONENTS) -> Beam:
    """The beam for a few columns: finer exponents, at every scale."""
    return Beam(factors, width=240, exact=2400, exponents=exponents, keeps_scales=True)


def search(logs: FloatArray, target_ranks: FloatArray, beam: Beam | None = None) -> list[Found]:
    """The best products of up to `beam.factors` terms, best first, no two of one ranking.

    `logs` (T, n) are the terms' logarithms on the rows of the target (n,).
    """
    beam = beam or Beam()
    centred = logs - logs.mean(axis=1, keepdims=True)
    target = target_ranks - target_ranks.mean()
    target = target / np.sqrt(target @ target)
    found: dict[Factors, Found] = {}
    current = [Factors(())]
    for _ in range(min(beam.factors, len(logs))):
        grown = _best_extensions(current, centred, target, beam)
        if not grown:
            break
        ranked = rank_exactly(grown, logs, target_ranks)
        kept = ranked if beam.keeps_scales else _distinct(ranked)
        current = [one.factors for one in kept[: beam.width]]
        found |= {one.factors: one for one in ranked}
    return _distinct(sorted(found.values(), key=_order))


def _order(one: Found) -> tuple[float, int]:
    return -one.rho, len(one.factors.powers)


def _distinct(found: Sequence[Found]) -> list[Found]:
    """Without later products whose rho equals an earlier one's: they rank alike."""
    seen: set[float] = set()
    kept = []
    for one in sorted(found, key=_order):
        key = round(one.rho, 10)
        if key not in seen:
            seen.add(key)
            kept.append(one)
    return kept


def rank_exactly(
    products: Sequence[Factors], logs: FloatArray, target_ranks: FloatArray
) -> list[Found]:
    """The products with their exact rho, best first."""
    scores = np.stack([one.logs(logs) for one in products])
    rho = spearman_many(scores, target_ranks).values
    made = [
        Found(one, abs(float(value)), -1 if value < 0 else 1)
        for one, value in zip(products, rho, strict=True)
    ]
    return sorted(made, key=_order)


def _best_extensions(
    current: Sequence[Factors], centred: FloatArray, target: FloatArray, beam: Beam
) -> list[Factors]:
    """The products one term longer with the largest closed-form correlation, best first."""
    most, exponents = beam.exact, beam.exponents
    base = np.stack([one.logs(centred) for one in current])  # (K, n)
    by_target, by_terms = base @ target, base @ centred.T  # (K,), (K, T)
    own, terms_target = (base * base).sum(axis=1), centred @ target
    terms_own = (centred * centred).sum(axis=1)
    floor = _FLAT * max(float(terms_own.max()), 1e-300)
    candidates: list[tuple[float, int, int, int]] = []
    for power, exponent in enumerate(map(float, exponents)):
        above = by_target[:, np.newaxis] + exponent * terms_target
        below = own[:, np.newaxis] + exponent**2 * terms_own + 2 * exponent * by_terms
        found = np.abs(above) / np.sqrt(np.maximum(below, floor))
        found[below <= floor] = 0.0
        for row, one in enumerate(current):
            found[row, [term for term, _ in one.powers]] = -1.0
        flat = found.reshape(-1)
        n_best = min(most, len(flat))
        for place in np.argpartition(-flat, n_best - 1)[:n_best]:
            row, term = divmod(int(place), found.shape[1])
            if flat[place] > 0:
                candidates.append((-float(flat[place]), row, term, power))
    candidates.sort()
    grown: dict[frozenset[tuple[int, Fraction]], Factors] = {}
    for _, row, term, power in candidates:
        one = current[row].times(term, exponents[power])
        powers = one.powers if beam.keeps_scales else _scaled(one.powers)
        grown.setdefault(frozenset(powers), one)
        if len(grown) >= most:
            break
    return list(grown.values())


def _scaled(powers: Sequence[tuple[int, Fraction]]) -> list[tuple[int, Fraction]]:
    """The powers in a form that equal rankings share: the first term's exponent is 1."""
    _, leading = min(powers)
    return [(term, exponent / leading) for term, exponent in powers]


# x y and x / y once for each unordered pair, x sqrt(y) and x / sqrt(y) for each ordered one: every
# other pair of exponents has the ranking of one of these.
PAIR_EXPONENTS = (Fraction(1), Fraction(-1), Fraction(1, 2), Fraction(-1, 2))


def is_new_pair(first: IntArray, second: IntArray, exponent: Fraction) -> BoolArray:
    """Which products first * second^exponent are not the same ranking as another one."""
    return np.asarray(first < second if abs(exponent) == 1 else first != second)


def n_pairs(n_terms: int) -> int:
    """How many products of two terms there are."""
    return 3 * n_terms * (n_terms - 1)
