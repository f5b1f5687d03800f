"""The space of formulas of a campaign: its statistics, the length of chains, the depth."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol, TypeVar

from lpzero.discover.settings import AS_WRITTEN, EQUAL, EXACT, Settings
from lpzero.errors import InputError
from primitives.canonical import canonical
from primitives.deap_set import MatrixNode, ScoreNode, build_set
from primitives.expressions import (
    Apply,
    Combine,
    Expression,
    Leaf,
    branch,
    chain_of,
    walk,
)
from primitives.formula import Formula, Term
from primitives.parser import parse_paper_formula
from primitives.pruning import check
from primitives.reductions import PAPER_REDUCTIONS
from primitives.registry import BINARIES, UNARIES
from primitives.rejection import Rejected
from primitives.statistics import STATISTICS

# How often the authors' code draws each binary operation; any other is never drawn.
_RELEASED_WEIGHTS = {"add": 0.6, "sub": 0.3, "matmul": 0.05, "mul": 0.05}
_EARLY_LEAF = 0.3  # the probability that a branch ends above the deepest level
_TRIES = 5000
_MOST_KNOWN = 65_536


T = TypeVar("T")


class RandomSource(Protocol):
    """The methods used of a random generator; the module `random` has them too."""

    def random(self) -> float: ...
    def randint(self, a: int, b: int) -> int: ...
    def choice(self, seq: Sequence[T]) -> T: ...
    def choices(
        self, population: Sequence[T], weights: Sequence[float] | None = ..., *, k: int = ...
    ) -> list[T]: ...


@dataclass(frozen=True, slots=True)
class ScoredForm:
    """The form that is scored for a formula: its canonical form without the sign, and that sign."""

    formula: Formula
    sign: int
    key: str


class Language:
    """The space of a campaign: draws formulas, recognises those outside the space, prunes."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.statistics = [name for name in STATISTICS if name in settings.statistics]
        self.rules = frozenset(settings.rules)
        self.reductions = [name for name in PAPER_REDUCTIONS if name in settings.reductions]
        self.primitive_set = self._primitive_set()
        # The longer a campaign runs, the more of its formulas it has met before, mostly of late.
        self._known_forms = lru_cache(_MOST_KNOWN)(self._examine)
        self._known_outside = lru_cache(_MOST_KNOWN)(self._why_outside)

    def _primitive_set(self) -> Any:
        """DEAP's primitive set with these statistics only; without signs, which are fitted."""
        made = build_set()
        kept = [node for node in made.terminals[MatrixNode] if node.name in self.statistics]
        made.terminals[MatrixNode] = kept
        roots = [node for node in made.primitives[ScoreNode] if "minus" not in node.name]
        made.primitives[ScoreNode] = roots
        return made

    def draw(self, rng: RandomSource) -> Formula:
        """A random formula of the space.

        The paper's chains have a fixed number of operations, which may be `identity`. The other
        methods draw any number up to the limit, which finds simple formulas sooner.
        """
        expression = self._draw(rng, self.settings.depth, True)
        return Formula.of_term(rng.choice(self.reductions), expression)

    def _draw(self, rng: RandomSource, depth: int, at_top: bool) -> Expression:
        if depth == 0 or (not at_top and rng.random() < _EARLY_LEAF):
            return branch(rng.choice(self.statistics), *self._chain(rng))
        below = [self._draw(rng, depth - 1, False) for _ in range(2)]
        made: Expression = Combine(self.draw_binary(rng), below[0], below[1])
        if not at_top:
            for operation in self._chain(rng):
                made = Apply(operation, made)
        return made

    def _chain(self, rng: RandomSource) -> list[str]:
        most = self.settings.unaries
        length = most if self.settings.method == "paper" else rng.randint(0, most)
        return rng.choices(list(UNARIES), k=length)

    def draw_binary(self, rng: RandomSource) -> str:
        """A binary operation, with the weights of the settings."""
        names = list(BINARIES)
        if self.settings.binary_weights == EQUAL:
            return rng.choice(names)
        return rng.choices(names, [_RELEASED_WEIGHTS.get(name, 0.0) for name in names], k=1)[0]

    def why_outside(self, formula: Formula) -> str | None:
        """Why the formula is outside the space; None if it is inside."""
        return self._known_outside(formula)

    def _why_outside(self, formula: Formula) -> str | None:
        if not formula.is_term:
            return f"{len(formula.terms)} terms, which need --terms 2 or more"
        reduction = formula.term.reduction
        if reduction not in PAPER_REDUCTIONS:
            return f"reduction {reduction}, which needs --terms 2 or more"
        if reduction not in self.reductions:
            return f"reduction {reduction}, which is not allowed (--reductions)"
        return self.why_term_outside(formula.term)

    def why_term_outside(self, term: Term) -> str | None:
        """Why the block expression of a term is outside the space; None if it is inside."""
        s = self.settings
        run, levels = _shape(term.expression)
        if run > s.unaries:
            return f"{run} unary operations in a row, {s.unaries} are allowed (--unaries)"
        if levels > s.depth:
            return f"{levels} binary operations deep, {s.depth} are allowed (--depth)"
        if s.depth == 1 and levels == 1 and not isinstance(term.expression, Combine):
            return "a unary above the binary operation, which needs --depth 2"
        if s.chains == EXACT:
            if any(n != s.unaries for n in _chain_lengths(term.expression)):
                return f"chains that have not exactly {s.unaries} operations (--chains, --unaries)"
            if s.depth and not isinstance(term.expression, Combine):
                return "no binary operation, which --chains exact has"
        for node in walk(term.expression):
            if isinstance(node, Leaf) and node.statistic not in self.statistics:
                return f"statistic {node.statistic}, which is not allowed (--statistics)"
            if not s.same_statistic and isinstance(node, Combine) and _is_same_pair(node):
                return "a statistic paired with itself, which needs --same-statistic"
        return None

    def prune(self, formula: Formula) -> Rejected | None:
        """Why the formula need not be evaluated; None if it must be."""
        # A formula without a connected branch has no canonical form, whichever rules are on.
        return check(formula, self.rules | {"both-disconnected"}) if self.rules else None

    def examine(self, formula: Formula) -> ScoredForm | Rejected:
        """The form to score for the formula, or the rule that rejects it.

        Without pruning, formulas count as equal only if their text is equal.
        """
        return self._known_forms(formula)

    def _examine(self, formula: Formula) -> ScoredForm | Rejected:
        if not self.rules:
            return ScoredForm(formula, 1, str(formula))
        pruned = self.prune(formula)
        if pruned is not None:
            return pruned
        reduced = canonical(formula)
        if self.settings.sign == AS_WRITTEN:
            # Opposite signs are two formulas then, with opposite scores.
            return ScoredForm(reduced, 1, str(reduced))
        plain = reduced.with_sign(1)
        return ScoredForm(plain, reduced.sign, str(plain))

    def parse(self, text: str) -> Formula:
        """The formula that the text spells in this language."""
        return parse_paper_formula(text)

    def read(self, text: str) -> Formula:
        """A starting formula; one that is pruned is replaced by its canonical form."""
        formula = self.parse(text)
        if self.rules and self.prune(formula) is not None:
            formula = canonical(formula)
        found = self.prune(formula)
        if found is not None:
            raise InputError(f"the starting formula {text} is {found}")
        outside = self.why_outside(formula)
        if outside is not None:
            raise InputError(f"the starting formula {text} has {outside}")
        return formula.with_sign(1)

    def check_not_empty(self) -> None:
        """Raise InputError if none of many random formulas of the space survives pruning."""
        rng = random.Random(0)
        for _ in range(_TRIES):
            formula = self.draw(rng)
            if self.why_outside(formula) is None and self.prune(formula) is None:
                return
        raise InputError(
            f"no formula of this space survives pruning: all of {_TRIES:,} drawn with statistics"
            f" {' '.join(self.statistics)}, {self.settings.unaries} unaries and depth"
            f" {self.settings.depth} are rejected; allow more statistics, unaries or depth"
        )


def _shape(expression: Expression) -> tuple[int, int]:
    """(the most unary operations in a row, the most binary ones from the root to a leaf)."""
    longest = run = 0
    while isinstance(expression, Apply):
        run += 1
        expression = expression.operand
    longest = run
    if isinstance(expression, Leaf):
        return longest, 0
    left, right = _shape(expression.left), _shape(expression.right)
    return max(longest, left[0], right[0]), 1 + max(left[1], right[1])


def _chain_lengths(expression: Expression) -> list[int]:
    """The number of unary operations in a row above each leaf."""
    if isinstance(expression, Combine):
        return [*_chain_lengths(expression.left), *_chain_lengths(expression.right)]
    n = 0
    while isinstance(expression, Apply):
        n += 1
        expression = expression.operand
    return [n] if isinstance(expression, Leaf) else _chain_lengths(expression)


def _is_same_pair(node: Combine) -> bool:
    sides = chain_of(node.left), chain_of(node.right)
    return sides[0] is not None and sides[1] is not None and sides[0][0] == sides[1][0]
