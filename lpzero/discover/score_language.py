"""The space of products of terms: which terms, how many factors, which exponents.

A term is a block expression of the campaign's language, or a size, under one of the reductions over
positions, or a column. `Language` is the space of single terms, `ScoreLanguage` that of products,
and of sums of columns where there are columns.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from lpzero.discover.column_sums import ColumnSums
from lpzero.discover.language import Language, RandomSource
from lpzero.discover.settings import Settings
from lpzero.scores.columns import NO_COLUMNS, ColumnFacts
from lpzero.scores.products import COLUMN_EXPONENTS
from lpzero.scores.sums import is_summand, parts_of
from primitives.block_sizes import SIZES
from primitives.canonical import product_of
from primitives.changes import on_change
from primitives.expressions import Expression, Leaf, branch, drop_dead, walk
from primitives.formula import Atom, Column, Formula, Sum, Term, formulas_within
from primitives.parser import parse
from primitives.pruning import OUTER_RULES, check
from primitives.reductions import POSITION_REDUCTIONS, Reduction
from primitives.rejection import Rejected
from primitives.statistics import STATISTICS

EXPONENTS = tuple(Fraction(*p) for p in ((1, 2), (1, 1), (2, 1), (-1, 2), (-1, 1), (-2, 1)))
REDUCTIONS: tuple[Reduction, ...] = tuple(POSITION_REDUCTIONS)
_SIZE = 0.25  # the probability that a term reads a size instead of a statistic
_BINARY = 0.2  # the probability that a term has a binary operation, where the depth allows one
_COLUMN = 0.4  # the probability that a term is a column, where there are columns
_SUM = 0.3  # the probability that a formula is a sum, where there are columns
_SIZE_OPERATIONS = ("sqrt", "square", "log", "inverse")


Factors = list[tuple[Atom, Fraction]]


def of_factors(factors: Factors, positive: frozenset[str] = frozenset()) -> Formula | None:
    """The product of powers of terms; None if every factor cancels or one has no live branch.

    A column enters as its magnitude; those in `positive` need no |...| for it.
    """
    return _of_factors(tuple(sorted(factors, key=_by_text)), positive)


def _by_text(factor: tuple[Atom, Fraction]) -> tuple[str, Fraction]:
    return str(factor[0]), factor[1]


# The longer a campaign runs, the more of its offspring are products that it has made before,
# in whatever order their factors were picked.
@lru_cache(maxsize=65536)
def _of_factors(
    factors: tuple[tuple[Atom, Fraction], ...], positive: frozenset[str]
) -> Formula | None:
    if any(_is_dead(term) for term, _ in factors):
        return None
    # One text for one ranking: only here the signs of columns are known.
    has_columns = any(isinstance(term, Column) for term, _ in factors)
    return product_of(factors, positive, ranked=has_columns)


on_change(_of_factors.cache_clear)


def _is_dead(term: Atom) -> bool:
    return isinstance(term, Term) and drop_dead(term.expression) is None


class ScoreLanguage(Language):
    """Products of up to `settings.terms` terms, and sums of as many columns."""

    def __init__(self, settings: Settings, columns: ColumnFacts = NO_COLUMNS) -> None:
        super().__init__(settings)
        self.columns = columns
        self.sums = ColumnSums(columns.summands, settings.terms)
        self.score_rules = self.rules | frozenset(OUTER_RULES) if self.rules else frozenset()

    def draw(self, rng: RandomSource) -> Formula:
        """A random product of the space."""
        while True:
            if self._draws_sum(rng):
                made = self.sums.draw(rng)
            else:
                n_factors = rng.randint(1, self.settings.terms)
                made = of_factors(
                    [self.draw_factor(rng) for _ in range(n_factors)], self.columns.positive
                )
            if made is not None:
                return made.with_sign(1)

    def _draws_sum(self, rng: RandomSource) -> bool:
        if not self.columns.names or self.sums.is_empty:
            return False
        no_product = self.settings.columns_only and not self.columns.factors
        return no_product or rng.random() < _SUM

    def draw_factor(self, rng: RandomSource) -> tuple[Atom, Fraction]:
        """A random term with a random exponent."""
        term = self.draw_term(rng)
        return term, rng.choice(self.exponents(term))

    def exponents(self, term: Atom) -> tuple[Fraction, ...]:
        """The exponents that the term may have in a product."""
        return COLUMN_EXPONENTS if isinstance(term, Column) else EXPONENTS

    def draw_term(self, rng: RandomSource) -> Atom:
        """A random term: a column, or a chain of a statistic or size, seldom a binary operation."""
        if self.columns.factors and (self.settings.columns_only or rng.random() < _COLUMN):
            return Column(rng.choice(self.columns.factors))
        reduction = rng.choice(REDUCTIONS)
        at_end = POSITION_REDUCTIONS[reduction].end is not None
        if rng.random() < _SIZE:
            sizes = [name for name, size in SIZES.items() if size.at_ends or not at_end]
            chain = [rng.choice(_SIZE_OPERATIONS)] if rng.random() < 0.5 else []
            return Term(reduction, branch(rng.choice(sizes), *chain))
        names = [n for n in self.statistics if STATISTICS[n].at_ends or not at_end]
        if not names:
            return self.draw_term(rng)
        expression: Expression = branch(rng.choice(names), *self._chain(rng))
        if self.settings.depth and not at_end and rng.random() < _BINARY:
            expression = self._draw(rng, self.settings.depth, True)
        return Term(reduction, expression)

    def _why_outside(self, formula: Formula) -> str | None:
        n = len(formula.terms) + len(formula.columns)
        parts = parts_of(formula)
        if max(n, len(parts or ())) > self.settings.terms:
            n = max(n, len(parts or ()))
            return f"{n} terms, {self.settings.terms} are allowed (--terms)"
        for name in formula.columns:
            if name not in self.columns.names:
                return f"column {name}, which a campaign does not know"
        if self.settings.columns_only and formula.terms:
            return f"term {formula.terms[0]}; with --columns-only there are columns alone"
        if parts is not None and all(map(is_summand, parts)):
            return None
        for part in formulas_within(formula):
            for power in part.powers:
                if isinstance(power.base, Sum):
                    operation = "sub" if power.base.signed(-1) else "add"
                    return f"{operation} of terms; a campaign searches products"
        return next(filter(None, map(self.why_term_outside, formula.terms)), None)

    def why_term_outside(self, term: Term) -> str | None:
        """Why a term is outside the space; sizes are always inside."""
        if any(isinstance(leaf, Leaf) and leaf.is_size for leaf in walk(term.expression)):
            return None
        return super().why_term_outside(term)

    def prune(self, formula: Formula) -> Rejected | None:
        """Why the formula need not be evaluated; None if it must be."""
        if not self.rules:
            return None
        wanted = self.score_rules | {"both-disconnected"}
        return check(formula, wanted, max_factors=self.settings.terms)

    def parse(self, text: str) -> Formula:
        """The formula that the text spells, of one term or several."""
        return parse(text)
