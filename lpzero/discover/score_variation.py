"""New products from old ones, one change at a time: a factor, an exponent, a reduction or a chain.

Products are taken apart into powers of terms, changed, and put together again; block expressions
inside a term vary by the operators of single terms.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache

from lpzero.discover.score_language import REDUCTIONS, Factors, ScoreLanguage, of_factors
from lpzero.discover.variation import Variation, changed_expressions
from lpzero.scores.sums import parts_of
from primitives.canonical import as_product
from primitives.changes import on_change
from primitives.formula import Atom, Column, Formula, Term

_TRIES = 30  # to stay inside the space before the parent is returned


class ScoreVariation:
    """Crossover and mutation of products; to be called with the generator as the global one."""

    def __init__(self, language: ScoreLanguage) -> None:
        self.language = language
        self.terms = Variation(language)
        self._mutations: list[Callable[[Factors], Factors]] = [
            self._other_exponent,
            self._other_reduction,
            self._other_expression,
            self._other_factor,
            self._more,
            self._fewer,
        ]

    def crossover(self, first: Formula, second: Formula) -> Formula:
        """A product of factors of both parents, at least one of each."""

        parts, others = parts_of(first), parts_of(second)
        if parts is not None and others is not None:
            return self._inside(lambda: self.language.sums.crossed(parts, others), first)
        if parts is not None or others is not None:  # a sum and a product share no factors
            return self.mutate(first)

        def cross() -> Formula | None:
            mine, theirs = self.factors_of(first), self.factors_of(second)
            most = self.language.settings.terms
            picked = random.sample(mine, random.randint(1, len(mine)))
            room = max(1, most - len(picked))
            picked = picked[: most - 1] if most > 1 else []
            return self._of_factors(
                picked + random.sample(theirs, random.randint(1, min(len(theirs), room)))
            )

        return self._inside(cross, first)

    def mutate(self, formula: Formula) -> Formula:
        """The formula after one mutation of a random kind."""

        parts = parts_of(formula)
        if parts is not None:
            return self._inside(lambda: self.language.sums.mutated(parts), formula)

        def change() -> Formula | None:
            return self._of_factors(random.choice(self._mutations)(self.factors_of(formula)))

        return self._inside(change, formula)

    def neighbours(self, formula: Formula) -> Iterator[Formula]:
        """Every product of the space one change away: an exponent, reduction, chain or factor."""
        parts = parts_of(formula)
        if parts is not None:
            yield from self.language.sums.neighbours(parts)
            return
        factors = self.factors_of(formula)
        for at, (term, exponent) in enumerate(factors):
            rest = factors[:at] + factors[at + 1 :]
            exponents = self.language.exponents(term)
            others: Factors = [(term, other) for other in exponents if other != exponent]
            others += [(other, exponent) for other in self._other_terms(term)]
            for one in ([], *([other] for other in others)):
                made = self._of_factors([*rest[:at], *one, *rest[at:]])
                if made is not None and self.language.why_outside(made) is None:
                    yield made.with_sign(1)

    def _other_terms(self, term: Atom) -> Iterator[Atom]:
        """The terms one change away: another reduction or chain; another column."""
        if isinstance(term, Column):
            yield from (Column(n) for n in self.language.columns.factors if n != term.name)
            return
        for reduction in REDUCTIONS:
            if reduction != term.reduction:
                yield Term(reduction, term.expression)
        for expression in changed_expressions(term.expression, self.language.statistics):
            yield Term(term.reduction, expression)

    def _of_factors(self, factors: Factors) -> Formula | None:
        return of_factors(factors, self.language.columns.positive)

    def factors_of(self, formula: Formula) -> Factors:
        """The formula's terms and columns with their exponents."""
        return factors_of(formula, self.language.columns.positive)

    def _inside(self, make: Callable[[], Formula | None], otherwise: Formula) -> Formula:
        for _ in range(_TRIES):
            made = make()
            if made is None:
                continue
            made = made.with_sign(1)
            if made != otherwise and self.language.why_outside(made) is None:
                return made
        return otherwise

    def _other_exponent(self, factors: Factors) -> Factors:
        at = random.randrange(len(factors))
        term = factors[at][0]
        return _with(factors, at, (term, random.choice(self.language.exponents(term))))

    def _other_reduction(self, factors: Factors) -> Factors:
        at = random.randrange(len(factors))
        term, exponent = factors[at]
        if isinstance(term, Column):
            return self._other_factor(factors)
        return _with(factors, at, (Term(random.choice(REDUCTIONS), term.expression), exponent))

    def _other_expression(self, factors: Factors) -> Factors:
        at = random.randrange(len(factors))
        term, exponent = factors[at]
        if isinstance(term, Column):
            return self._other_factor(factors)
        changed = list(changed_expressions(term.expression, self.language.statistics))
        return _with(factors, at, (Term(term.reduction, random.choice(changed)), exponent))

    def _other_factor(self, factors: Factors) -> Factors:
        at = random.randrange(len(factors))
        return _with(factors, at, self.language.draw_factor(random))

    def _more(self, factors: Factors) -> Factors:
        return [*factors, self.language.draw_factor(random)]

    def _fewer(self, factors: Factors) -> Factors:
        if len(factors) == 1:
            return self._other_factor(factors)
        at = random.randrange(len(factors))
        return factors[:at] + factors[at + 1 :]


def factors_of(formula: Formula, positive: frozenset[str] = frozenset()) -> Factors:
    """The formula's terms and columns with their exponents."""
    return list(_factors_of(formula, positive))


@lru_cache(maxsize=1024)  # a population's formulas are parents many times
def _factors_of(formula: Formula, positive: frozenset[str]) -> tuple[tuple[Atom, Fraction], ...]:
    factors = ((f.base, f.exponent) for f in as_product(formula, positive).factors)
    return tuple((base, exponent) for base, exponent in factors if isinstance(base, Atom))


on_change(_factors_of.cache_clear)


def _with(factors: Factors, at: int, one: tuple[Atom, Fraction]) -> Factors:
    return [*factors[:at], one, *factors[at + 1 :]]
