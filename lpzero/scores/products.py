"""Products of powers of terms: a beam search, and every product of two.

In logarithms a product is a sum, so the correlation of (a product times a term to a power) with the
ranked target is closed form for all of them at once. The best few hundred by it are ranked exactly,
and the best of those make the next beam. Several tables are searched together: each product has a
correlation with each target, and one number across the tables decides. Shapes: T terms, n rows of
a table, K products, M tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import NamedTuple

import numpy as np

from lpzero.arrays import BoolArray, FloatArray, IntArray
from lpzero.judgement.correlation import spearman_many
from lpzero.judgement.measures import ONE_TABLE, Across
from lpzero.judgement.ranks import rank_many
from lpzero.scores.terms import TermTable
from primitives.canonical import product_of
from primitives.formula import Formula

EXPONENTS = (Fraction(1, 2), Fraction(1), Fraction(2), Fraction(-1, 2), Fraction(-1), Fraction(-2))
# Columns are few: finer exponents, which the language has for them, are affordable.
COLUMN_EXPONENTS = tuple(
    Fraction(sign * numerator, 4) for sign in (1, -1) for numerator in (1, 2, 3, 4, 6, 8)
)
MOST_FACTORS = 4
_FLAT = 1e-12  # of the variance of logarithms: a product that varies less is constant
_SCREENED = 1 << 20  # products that are screened at a time
_RANKED = 128  # products that are ranked at a time: their logarithms stay in the cache


@dataclass(frozen=True, slots=True)
class Factors:
    """A product: indices of terms with their exponents, in the order they were added."""

    powers: tuple[tuple[int, Fraction], ...]

    def times(self, term: int, exponent: Fraction) -> Factors:
        return Factors((*self.powers, (term, exponent)))

    def logs(self, table: FloatArray) -> FloatArray:
        """The logarithm of the product (n,) from those of the terms (T, n)."""
        logs: FloatArray = product_logs([self], table)[0]
        return logs

    def formula(self, terms: TermTable, sign: int = 1) -> Formula:
        """The product as a formula of the language."""
        factors = ((terms.terms[term], exponent) for term, exponent in self.powers)
        formula = product_of(factors, terms.positive)
        assert formula is not None, "a term is a factor once"
        return formula.with_sign(formula.sign * sign)


def product_logs(products: Sequence[Factors], table: FloatArray) -> FloatArray:
    """The logarithms of the products (K, n) from those of the terms (T, n)."""
    logs = np.zeros((len(products), table.shape[1]))
    for place in range(max(len(product.powers) for product in products)):
        rows = [row for row, product in enumerate(products) if len(product.powers) > place]
        powers = [products[row].powers[place] for row in rows]
        exponents = [exponent.numerator / exponent.denominator for _, exponent in powers]
        added = table[[term for term, _ in powers]]
        added *= np.array(exponents)[:, np.newaxis]
        logs[slice(None) if len(rows) == len(products) else rows] += added
    return logs


class Found(NamedTuple):
    """A product with its number across the tables searched and the sign that makes it largest.

    With one table the number is its rho; `rhos` has the rho on each table, with the sign applied.
    """

    factors: Factors
    value: float
    sign: int
    rhos: tuple[float, ...]


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


class Searched(NamedTuple):
    """The terms' logarithms (T, n) on the rows of one table, and its ranked target (n,)."""

    logs: FloatArray
    target_ranks: FloatArray


def search(logs: FloatArray, target_ranks: FloatArray, beam: Beam | None = None) -> list[Found]:
    """The best products of up to `beam.factors` terms on one table, as `search_tables` has them."""
    return list(search_tables([Searched(logs, target_ranks)], beam=beam))


def search_tables(
    tables: Sequence[Searched], across: Across = ONE_TABLE, beam: Beam | None = None
) -> Iterator[Found]:
    """The best products of up to `beam.factors` terms, best first, no two of one ranking.

    All tables have the same terms; `across` says which product is better. Rankings are compared
    as products are asked for.
    """
    beam = beam or Beam()
    centred = [_Centred.of(table) for table in tables]
    products: list[Found] = []
    current = [Factors(())]
    for _ in range(min(beam.factors, len(tables[0].logs))):
        grown = _best_extensions(current, centred, across, beam)
        if not grown:
            break
        ranked = rank_exactly(grown, tables, across)
        kept = ranked if beam.keeps_scales else _distinct(ranked, tables)
        current = [product.factors for product in islice(kept, beam.width)]
        products += ranked
    return _distinct(products, tables)


def _order(product: Found) -> tuple[float, int]:
    return -product.value, len(product.factors.powers)


def _distinct(products: Sequence[Found], tables: Sequence[Searched]) -> Iterator[Found]:
    """The products, best first, without those that rank every table as an earlier one does."""
    ordered = sorted(products, key=_order)
    rankings_met = set()
    for start in range(0, len(ordered), _RANKED):
        compared = ordered[start : start + _RANKED]
        signs = np.array([product.sign for product in compared])[:, np.newaxis]
        factors = [product.factors for product in compared]
        ranks = [rank_many(signs * product_logs(factors, table.logs)) for table in tables]
        for place, product in enumerate(compared):
            ranking = b"".join([of_table[place].tobytes() for of_table in ranks])
            if ranking not in rankings_met:
                rankings_met.add(ranking)
                yield product


def rank_exactly(
    products: Sequence[Factors], tables: Sequence[Searched], across: Across = ONE_TABLE
) -> list[Found]:
    """The products with their exact rho on each table, best first."""
    rhos = np.empty((len(tables), len(products)))
    for start in range(0, len(products), _RANKED):
        part = slice(start, start + _RANKED)
        for of_table, table in zip(rhos, tables, strict=True):
            logs = product_logs(products[part], table.logs)
            of_table[part] = spearman_many(logs, table.target_ranks).values
    values, signs = across.signed(rhos)
    of_products = values.tolist(), signs.tolist(), (signs * rhos).T.tolist()
    made = [
        Found(factors, value, sign, tuple(on_tables))
        for factors, value, sign, on_tables in zip(products, *of_products, strict=True)
    ]
    return sorted(made, key=_order)


class _Centred(NamedTuple):
    """A table's logarithms (T, n) minus their means and its target (n,) centred, of length one.

    `by_target` (T,) and `squares` (T,) are the logarithms' products with the target and themselves.
    """

    logs: FloatArray
    target: FloatArray
    by_target: FloatArray
    squares: FloatArray

    @classmethod
    def of(cls, table: Searched) -> _Centred:
        logs = table.logs - table.logs.mean(axis=1, keepdims=True)
        target = table.target_ranks - table.target_ranks.mean()
        target = target / np.sqrt(target @ target)
        return cls(logs, target, logs @ target, (logs * logs).sum(axis=1))


class _Extensions:
    """The correlations of every (product times a term to a power) with one table's target."""

    def __init__(self, current: Sequence[Factors], table: _Centred) -> None:
        base = product_logs(current, table.logs)  # (K, n)
        self._table = table
        self._by_target, self._by_terms = base @ table.target, base @ table.logs.T  # (K,), (K, T)
        self._squares = (base * base).sum(axis=1)
        self._floor = _FLAT * max(float(table.squares.max()), 1e-300)

    def correlations(self, exponent: float) -> tuple[FloatArray, BoolArray]:
        """Pearson's correlation (K, T), 0 for constant products, and which these are (K, T)."""
        above = self._by_target[:, np.newaxis] + exponent * self._table.by_target
        below = self._squares[:, np.newaxis] + exponent**2 * self._table.squares
        below = below + 2 * exponent * self._by_terms
        is_flat = below <= self._floor
        rhos = above / np.sqrt(np.maximum(below, self._floor))
        rhos[is_flat] = 0.0
        return rhos, is_flat


def _best_extensions(
    current: Sequence[Factors], tables: Sequence[_Centred], across: Across, beam: Beam
) -> list[Factors]:
    """The products one term longer with the largest closed-form correlation, best first."""
    extensions = [_Extensions(current, table) for table in tables]
    n_terms = len(tables[0].logs)
    exponents = [float(exponent) for exponent in beam.exponents]
    taken = [
        row * n_terms + term for row, product in enumerate(current) for term, _ in product.powers
    ]
    values, places = [], []
    for exponent in exponents:
        on_tables = [of_table.correlations(exponent) for of_table in extensions]
        of_all, _ = across.signed(np.stack([rho for rho, _ in on_tables]))
        of_all[np.logical_and.reduce([is_flat for _, is_flat in on_tables])] = -np.inf
        of_all = of_all.reshape(-1)
        of_all[taken] = -np.inf
        best = largest(of_all, beam.exact)
        best = best[of_all[best] > -np.inf]
        values.append(of_all[best])
        places.append(best)
    powers = np.repeat(np.arange(len(exponents)), [len(best) for best in places])
    rows, terms = np.divmod(np.concatenate(places), n_terms)
    order = np.lexsort((powers, terms, rows, -np.concatenate(values)))
    parents = [
        [(term, float(exponent)) for term, exponent in product.powers] for product in current
    ]
    grown: dict[frozenset[tuple[int, float]], Factors] = {}
    for row, term, power in zip(
        rows[order].tolist(), terms[order].tolist(), powers[order].tolist(), strict=True
    ):
        factors = [*parents[row], (term, exponents[power])]
        key = frozenset(factors if beam.keeps_scales else _scaled(factors))
        if key not in grown:
            grown[key] = current[row].times(term, beam.exponents[power])
            if len(grown) >= beam.exact:
                break
    return list(grown.values())


def _scaled(factors: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    """The factors in a form that equal rankings share: the first term's exponent is 1."""
    _, leading = min(factors)
    return [(term, exponent / leading) for term, exponent in factors]


# x y and x / y once for each unordered pair, x sqrt(y) and x / sqrt(y) for each ordered one: every
# other pair of exponents has the ranking of one of these.
PAIR_EXPONENTS = (Fraction(1), Fraction(-1), Fraction(1, 2), Fraction(-1, 2))


def is_new_pair(first: IntArray, second: IntArray, exponent: Fraction) -> BoolArray:
    """Which products first * second^exponent are not the same ranking as another one."""
    return np.asarray(first < second if abs(exponent) == 1 else first != second)


@dataclass(frozen=True, eq=False)
class PairScreen:
    """All products of two terms by closed form: their logarithms' correlation with ranked targets.

    `logs` (T, n) are the terms' logarithms on some rows, `centred` (T, n) the same minus their
    means. What does not depend on the target is computed once: `products` (T, T) of the latter.
    """

    logs: FloatArray
    centred: FloatArray
    products: FloatArray

    @classmethod
    def of(cls, logs: FloatArray) -> PairScreen:
        """The screen of the terms with these logarithms (T, n)."""
        centred = logs - logs.mean(axis=1, keepdims=True)
        return cls(logs, centred, centred @ centred.T)

    def with_target(self, target_ranks: FloatArray) -> FloatArray:
        """The products (T,) of the terms with the ranked target (n,), which is scaled to size 1."""
        target = target_ranks - target_ranks.mean()
        return np.asarray(self.centred @ (target / np.sqrt(target @ target)))

    def correlations(
        self, with_target: FloatArray, start: int, stop: int, exponent: Fraction
    ) -> FloatArray:
        """|r| (stop - start, T) of each of these terms times every term to the exponent.

        It is -1 for products that have the ranking of another one.
        """
        power, first, own = float(exponent), slice(start, stop), np.diagonal(self.products)
        below = 2 * power * self.products[first]
        below += own[first, np.newaxis]
        below += power**2 * own
        flat = _FLAT * max(float(own.max()), 1e-300)
        is_flat = below <= flat
        rhos = np.abs(with_target[first, np.newaxis] + power * with_target)
        rhos /= np.sqrt(np.maximum(below, flat, out=below), out=below)
        rhos[is_flat] = 0.0
        rows, columns = np.arange(start, stop)[:, np.newaxis], np.arange(len(self.logs))
        rhos[~is_new_pair(rows, columns, exponent)] = -1.0
        return rhos

    def best(self, target_ranks: FloatArray, exact: int = Beam().exact) -> list[Found]:
        """The best products, best first: all are screened, the first `exact` ranked exactly."""
        with_target = self.with_target(target_ranks)
        step = max(1, _SCREENED // max(1, len(self.logs)))
        best: list[tuple[float, int, int, Fraction]] = []
        for exponent in PAIR_EXPONENTS:
            for start in range(0, len(self.logs), step):
                stop = min(start + step, len(self.logs))
                rhos = self.correlations(with_target, start, stop, exponent).reshape(-1)
                places = np.flatnonzero(rhos > (-best[-1][0] if len(best) == exact else 0.0))
                for place in places[largest(rhos[places], exact)]:
                    first, second = divmod(int(place), len(self.logs))
                    best.append((-float(rhos[place]), start + first, second, exponent))
                best = sorted(best)[:exact]
        one = Fraction(1)
        pairs = [Factors(((first, one), (second, power))) for _, first, second, power in best]
        return rank_exactly(pairs, [Searched(self.logs, target_ranks)]) if pairs else []


def largest(values: FloatArray, n: int) -> IntArray:
    """The places (n,) of the n largest values, in no order; of fewer values all."""
    if len(values) <= n:
        return np.arange(len(values))
    return np.asarray(np.argpartition(-values, n - 1)[:n])
