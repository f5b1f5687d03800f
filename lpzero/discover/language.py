"""The formulas a campaign may make: which statistics, how long a chain, how many binaries deep."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from lpzero.discover.settings import Settings
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
from primitives.formula import REDUCTIONS, Formula
from primitives.parser import parse_paper_formula
from primitives.pruning import check
from primitives.registry import BINARIES, UNARIES
from primitives.rejection import Rejected
from primitives.statistics import STATISTICS

_SHORT = 0.3  # how often a branch ends above the deepest level
_TRIES = 5000
_MOST_EXAMINED = 100_000


T = TypeVar("T")


class Dice(Protocol):
    """What is asked of a generator; the module `random` is one, too."""

    def random(self) -> float: ...
    def randint(self, a: int, b: int) -> int: ...
    def choice(self, seq: Sequence[T]) -> T: ...
    def choices(self, population: Sequence[T], *, k: int = ...) -> list[T]: ...


@dataclass(frozen=True, slots=True)
class Scored:
    """What is scored in a formula's place: its canonical form without the sign, and that sign."""

    formula: Formula
    sign: int
    key: str


class Language:
    """The space of a campaign: draws formulas, tells which lie outside, prunes."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.statistics = [name for name in STATISTICS if name in settings.statistics]
        self.rules = frozenset(settings.rules)
        self.primitive_set = self._primitive_set()
        self._examined: dict[Formula, Scored | Rejected] = {}

    def _primitive_set(self) -> Any:
        """DEAP's set without other statistics; the sign is fitted, so it need not vary."""
        made = build_set()
        kept = [node for node in made.terminals[MatrixNode] if node.name in self.statistics]
        made.terminals[MatrixNode] = kept
        roots = [node for node in made.primitives[ScoreNode] if "minus" not in node.name]
        made.primitives[ScoreNode] = roots
        return made

    def draw(self, rng: Dice) -> Formula:
        """A random formula of the space.

        The paper's chains have a fixed number of operations, of which `identity` is one; ours
        have any number up to the limit, which finds simple formulas sooner.
        """
        return Formula(self._draw(rng, self.settings.depth, True), rng.choice(REDUCTIONS))

    def _draw(self, rng: Dice, depth: int, at_top: bool) -> Expression:
        if depth == 0 or (not at_top and rng.random() < _SHORT):
            return branch(rng.choice(self.statistics), *self._chain(rng))
        below = [self._draw(rng, depth - 1, False) for _ in range(2)]
        made: Expression = Combine(rng.choice(list(BINARIES)), below[0], below[1])
        if not at_top:
            for operation in self._chain(rng):
                made = Apply(operation, made)
        return made

    def _chain(self, rng: Dice) -> list[str]:
        most = self.settings.unaries
        length = most if self.settings.method == "paper" else rng.randint(0, most)
        return rng.choices(list(UNARIES), k=length)

    def why_outside(self, formula: Formula) -> str | None:
        """What puts the formula outside the space, or None."""
        s = self.settings
        run, levels = _shape(formula.expression)
        if run > s.unaries:
            return f"{run} unary operations in a row, {s.unaries} are allowed (--unaries)"
        if levels > s.depth:
            return f"{levels} binary operations deep, {s.depth} are allowed (--depth)"
        if s.depth == 1 and levels == 1 and not isinstance(formula.expression, Combine):
            return "a unary above the binary operation, which needs --depth 2"
        for node in walk(formula.expression):
            if isinstance(node, Leaf) and node.statistic not in self.statistics:
                return f"statistic {node.statistic}, which is not allowed (--statistics)"
            if not s.same_statistic and isinstance(node, Combine) and _is_same_pair(node):
                return "a statistic paired with itself, which needs --same-statistic"
        return None

    def prune(self, formula: Formula) -> Rejected | None:
        """Why the formula need not be evaluated, or None."""
        # A formula without a live branch has no canonical form, whichever rules are on.
        return check(formula, self.rules | {"both-disconnected"}) if self.rules else None

    def examine(self, formula: Formula) -> Scored | Rejected:
        """What to score for the formula, or why it need not be.

        Without pruning every text is a formula of its own, as in a search that knows no better.
        """
        found = self._examined.get(formula)
        if found is None:
            if len(self._examined) >= _MOST_EXAMINED:
                self._examined.clear()
            found = self._examined[formula] = self._examine(formula)
        return found

    def _examine(self, formula: Formula) -> Scored | Rejected:
        if not self.rules:
            return Scored(formula, 1, str(formula))
        pruned = self.prune(formula)
        if pruned is not None:
            return pruned
        reduced = canonical(formula)
        plain = reduced if reduced.sign > 0 else -reduced
        return Scored(plain, reduced.sign, str(plain))

    def read(self, text: str) -> Formula:
        """A starting formula; one that is pruned is replaced by the formula that has its score."""
        formula = parse_paper_formula(text)
        if self.rules and self.prune(formula) is not None:
            formula = canonical(formula)
        found = self.prune(formula)
        if found is not None:
            raise InputError(f"the starting formula {text} is {found}")
        outside = self.why_outside(formula)
        if outside is not None:
            raise InputError(f"the starting formula {text} has {outside}")
        return Formula(formula.expression, formula.reduction)

    def check_not_empty(self) -> None:
        """An error if no formula of the space survives pruning, as far as draws can tell."""
        rng = random.Random(0)
        for _ in range(_TRIES):
            formula = self.draw(rng)
            if self.why_outside(formula) is None and self.prune(formula) is None:
                return
        raise InputError(
            f"no formula of this space survives pruning: of {_TRIES:,} drawn with statistics"
            f" {' '.join(self.statistics)}, {self.settings.unaries} unaries and depth"
            f" {self.settings.depth}, every one is rejected; allow more of them"
        )


def _shape(expression: Expression) -> tuple[int, int]:
    """(the most unary operations in a row, the most binary ones on the way down)."""
    longest = run = 0
    while isinstance(expression, Apply):
        run += 1
        expression = expression.operand
    longest = run
    if isinstance(expression, Leaf):
        return longest, 0
    left, right = _shape(expression.left), _shape(expression.right)
    return max(longest, left[0], right[0]), 1 + max(left[1], right[1])


def _is_same_pair(node: Combine) -> bool:
    sides = chain_of(node.left), chain_of(node.right)
    return sides[0] is not None and sides[1] is not None and sides[0][0] == sides[1][0]
