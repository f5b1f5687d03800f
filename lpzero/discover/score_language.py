"""The space of products of terms: which terms, how many factors, which exponents.

A term is a block expression of the campaign's language, or a size, under one of the reductions over
positions. `Language` is the space of single terms, `ScoreLanguage` that of products.
"""

from __future__ import annotations

from fractions import Fraction

from lpzero.discover.language import Language, RandomSource
from lpzero.discover.settings import Settings
from primitives.block_sizes import SIZES
from primitives.expressions import Expression, Leaf, branch, drop_dead, walk
from primitives.formula import Formula
from primitives.parser import parse
from primitives.powers import Power, product, tree_of
from primitives.reductions import POSITION_REDUCTIONS, Reduction
from primitives.rejection import Rejected
from primitives.score import AnyFormula, Join, nodes, signed, with_sign
from primitives.score_pruning import SCORE_RULES, check
from primitives.statistics import STATISTICS

EXPONENTS = tuple(Fraction(*p) for p in ((1, 2), (1, 1), (2, 1), (-1, 2), (-1, 1), (-2, 1)))
REDUCTIONS: tuple[Reduction, ...] = tuple(POSITION_REDUCTIONS)
_SIZE = 0.25  # the probability that a term reads a size instead of a statistic
_BINARY = 0.2  # the probability that a term has a binary operation, where the depth allows one
_SIZE_OPERATIONS = ("sqrt", "square", "log", "inverse")


def of_factors(factors: list[tuple[Formula, Fraction]]) -> AnyFormula | None:
    """The product of powers of terms; None if every factor cancels or one has no live branch."""
    if any(drop_dead(term.expression) is None for term, _ in factors):
        return None
    made = product(1, (Power(term, exponent) for term, exponent in factors))
    if made.is_empty:
        return None
    sign, tree = tree_of(made)
    return signed(tree, sign)


class ScoreLanguage(Language):
    """Products of up to `settings.terms` terms."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.score_rules = self.rules | frozenset(SCORE_RULES) if self.rules else frozenset()

    def draw(self, rng: RandomSource) -> AnyFormula:
        """A random product of the space."""
        while True:
            n_factors = rng.randint(1, self.settings.terms)
            factors = [(self.draw_term(rng), rng.choice(EXPONENTS)) for _ in range(n_factors)]
            made = of_factors(factors)
            if made is not None:
                return with_sign(made, 1)

    def draw_term(self, rng: RandomSource) -> Formula:
        """A random term: a chain of a statistic or size, seldom a binary operation."""
        reduction = rng.choice(REDUCTIONS)
        at_end = POSITION_REDUCTIONS[reduction].end is not None
        if rng.random() < _SIZE:
            sizes = [name for name, size in SIZES.items() if size.at_ends or not at_end]
            chain = [rng.choice(_SIZE_OPERATIONS)] if rng.random() < 0.5 else []
            return Formula(branch(rng.choice(sizes), *chain), reduction)
        names = [n for n in self.statistics if STATISTICS[n].at_ends or not at_end]
        if not names:
            return self.draw_term(rng)
        expression: Expression = branch(rng.choice(names), *self._chain(rng))
        if self.settings.depth and not at_end and rng.random() < _BINARY:
            expression = self._draw(rng, self.settings.depth, True)
        return Formula(expression, reduction)

    def why_outside(self, formula: AnyFormula) -> str | None:
        """Why the formula is outside the space; None if it is inside."""
        if len(formula.terms) > self.settings.terms:
            n = len(formula.terms)
            return f"{n} terms, {self.settings.terms} are allowed (--terms)"
        if formula.columns:
            return f"column {formula.columns[0]}, which a campaign does not know"
        if not isinstance(formula, Formula):
            sums = [n for n in nodes(formula.tree) if isinstance(n, Join) and n.operation != "mul"]
            if sums:
                return f"{sums[0].operation} of terms; a campaign searches products"
        return next(filter(None, map(self.why_term_outside, formula.terms)), None)

    def why_term_outside(self, formula: Formula) -> str | None:
        """Why a term is outside the space; sizes are always inside."""
        if any(isinstance(leaf, Leaf) and leaf.is_size for leaf in walk(formula.expression)):
            return None
        return super().why_term_outside(formula)

    def prune(self, formula: AnyFormula) -> Rejected | None:
        """Why the formula need not be evaluated; None if it must be."""
        if not self.rules:
            return None
        wanted = self.score_rules | {"both-disconnected"}
        return check(formula, wanted, max_factors=self.settings.terms)

    def parse(self, text: str) -> AnyFormula:
        """The formula that the text spells, of one term or several."""
        return parse(text)
