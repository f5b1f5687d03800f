"""Variation in a DEAP toolbox: `mate` and `mutate` new formulas from old ones; neighbours.

The expression inside a term is a typed DEAP tree and varies by DEAP's own operators. What no tree
says is registered beside them: the factors of a product, their exponents and reductions, and the
parts of a sum of columns. Operators are decorated so that children lie inside the space.

DEAP draws from the global `random`: `as_global_rng` sets its state from a campaign's generator and
restores it afterwards.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import wraps
from typing import Any

from deap import base, gp

from lpzero.discover.language import Factors, Language
from lpzero.discover.settings import EXACT
from lpzero.scores.columns import parts_of, sum_of
from primitives.deap_set import build_chain_set, from_tree, grow, to_tree
from primitives.expressions import Apply, Combine, Expression, Leaf, walk
from primitives.formula import Atom, Column, Formula, Term
from primitives.registry import BINARIES, UNARIES
from primitives.statistics import SIZES

_TRIES = 30  # attempts to stay inside the space before returning the parent
_TREES = 0.25  # the probability that products cross the trees of two terms, not their factors
_SIGNS = (1, -1)

Operator = Callable[..., Formula | None]


@contextmanager
def as_global_rng(rng: random.Random) -> Iterator[None]:
    """A context in which the global generator continues `rng`; its own state is restored after."""
    before = random.getstate()
    random.setstate(rng.getstate())
    try:
        yield
    finally:
        rng.setstate(random.getstate())
        random.setstate(before)


def inside(language: Language) -> Callable[[Operator], Callable[..., Formula]]:
    """A decorator for operators: the first child inside the space that is not the first parent.

    The parent itself if many attempts give none.
    """

    def decorate(operator: Operator) -> Callable[..., Formula]:
        @wraps(operator)
        def limited(parent: Formula, *others: Formula) -> Formula:
            for _ in range(_TRIES):
                child = operator(parent, *others)
                if child is not None and child != parent and language.why_outside(child) is None:
                    return child
            return parent

        return limited

    return decorate


def register_variation(toolbox: base.Toolbox, language: Language) -> Variation:
    """Register `mate`, `mutate` and what they choose from; the variation has the neighbours too."""
    variation = Variation(language, toolbox)
    toolbox.register("cross_trees", gp.cxOnePoint)
    toolbox.register("new_subtree", gp.mutUniform, expr=variation.grow, pset=None)
    toolbox.register("other_node", gp.mutNodeReplacement, pset=language.primitive_set)
    toolbox.register("shrink", gp.mutShrink)
    toolbox.register("insert", gp.mutInsert, pset=build_chain_set())
    toolbox.register("mate", variation.mate)
    toolbox.register("mutate", variation.mutate)
    toolbox.decorate("mate", inside(language))
    toolbox.decorate("mutate", inside(language))
    return variation


class Variation:
    """The operators of a language; call them inside `as_global_rng`."""

    def __init__(self, language: Language, toolbox: base.Toolbox) -> None:
        self.language, self.toolbox = language, toolbox
        self._in_terms: list[Callable[[Term], Term]] = [
            lambda term: self._by_tree(toolbox.new_subtree, term),
            lambda term: self._by_tree(toolbox.other_node, term),
            lambda term: self._by_tree(toolbox.shrink, term),
            lambda term: self._by_tree(toolbox.insert, term),
            self._point,
        ]
        if language.settings.chains == EXACT:  # all else changes the length of a chain
            self._in_terms = [self._point]
        elif not language.has_products:
            self._in_terms.append(self._other_reduction)
        self._in_products: list[Callable[[Factors], Factors]] = [
            self._change_exponent,
            self._change_reduction,
            self._change_term,
            self._change_factor,
            self._more,
            self._fewer,
        ]

    def mate(self, first: Formula, second: Formula) -> Formula | None:
        """The first formula with something of the second: a subtree, factors, or summands."""
        if not self.language.has_products:
            return Formula.of_base(self._cross(first.term, second.term))
        parts, others = parts_of(first), parts_of(second)
        if parts is not None and others is not None:
            return self._cross_sums(parts, others)
        if parts is not None or others is not None:  # a sum and a product share no factors
            return self.mutate(first)
        mine, theirs = self.language.factors_of(first), self.language.factors_of(second)
        if random.random() < _TREES:
            return self._cross_terms(mine, theirs)
        most = self.language.settings.terms
        picked = random.sample(mine, random.randint(1, len(mine)))[: most - 1]
        room = max(1, most - len(picked))
        picked += random.sample(theirs, random.randint(1, min(len(theirs), room)))
        return self.language.product(picked)

    def mutate(self, formula: Formula) -> Formula | None:
        """The formula after one change of a random kind."""
        if not self.language.has_products:
            return Formula.of_base(random.choice(self._in_terms)(formula.term))
        parts = parts_of(formula)
        if parts is not None:
            return self._mutate_sum(parts)
        factors = self.language.factors_of(formula)
        return self.language.product(random.choice(self._in_products)(factors))

    # Terms: DEAP's trees

    def grow(self, pset: None, type_: type) -> list[Any]:
        """A random tree of the type, for DEAP's uniform mutation."""
        longest = max(1, self.language.settings.unaries)
        return grow(self.language.primitive_set, 0, longest, type_)

    def _by_tree(self, operator: Callable[[Any], tuple[Any]], term: Term) -> Term:
        (changed,) = operator(to_tree(term, self.language.primitive_set))
        return from_tree(changed)

    def _cross(self, first: Term, second: Term) -> Term:
        trees = (to_tree(term, self.language.primitive_set) for term in (first, second))
        return from_tree(self.toolbox.cross_trees(*trees)[0])

    def _point(self, term: Term) -> Term:
        """The term with one node replaced by another of the same arity, of any type.

        DEAP's replacement keeps the type of a node: it never makes `fro` of `abs`.
        """
        at = random.randrange(term.complexity)
        node = list(walk(term.expression))[at]
        if isinstance(node, Combine):
            name = self.language.draw_binary(random)
        elif isinstance(node, Apply):
            name = random.choice(list(UNARIES))
        else:
            name = random.choice(list(SIZES) if node.is_size else self.language.statistics)
        return Term(term.reduction, replace_name(term.expression, at, name))

    def _other_reduction(self, term: Term) -> Term:
        others = [name for name in self.language.reductions if name != term.reduction]
        return Term(random.choice(others or [term.reduction]), term.expression)

    # Products

    def _cross_terms(self, mine: Factors, theirs: Factors) -> Formula | None:
        """The first product with one of its terms crossed with a term of the second."""
        places = [at for at, (atom, _) in enumerate(mine) if isinstance(atom, Term)]
        donors = [atom for atom, _ in theirs if isinstance(atom, Term)]
        if not places or not donors:
            return None
        at = random.choice(places)
        term, exponent = mine[at]
        assert isinstance(term, Term)
        crossed = self._cross(term, random.choice(donors))
        return self.language.product(_with(mine, at, (crossed, exponent)))

    def _change_exponent(self, factors: Factors) -> Factors:
        at = random.randrange(len(factors))
        atom = factors[at][0]
        return _with(factors, at, (atom, random.choice(self.language.exponents(atom))))

    def _change_reduction(self, factors: Factors) -> Factors:
        at = random.randrange(len(factors))
        atom, exponent = factors[at]
        if isinstance(atom, Column):
            return self._change_factor(factors)
        return _with(factors, at, (self._other_reduction(atom), exponent))

    def _change_term(self, factors: Factors) -> Factors:
        at = random.randrange(len(factors))
        atom, exponent = factors[at]
        if isinstance(atom, Column):
            return self._change_factor(factors)
        return _with(factors, at, (random.choice(self._in_terms)(atom), exponent))

    def _change_factor(self, factors: Factors) -> Factors:
        at = random.randrange(len(factors))
        return _with(factors, at, self.language.draw_factor(random))

    def _more(self, factors: Factors) -> Factors:
        return [*factors, self.language.draw_factor(random)]

    def _fewer(self, factors: Factors) -> Factors:
        if len(factors) == 1:
            return self._change_factor(factors)
        at = random.randrange(len(factors))
        return factors[:at] + factors[at + 1 :]

    # Sums of columns

    def _cross_sums(self, mine: Sequence[Formula], theirs: Sequence[Formula]) -> Formula | None:
        most = self.language.settings.terms
        kept = random.sample(mine, random.randint(1, min(len(mine), most - 1)))
        room = most - len(kept)
        return sum_of([*kept, *random.sample(theirs, random.randint(1, min(len(theirs), room)))])

    def _mutate_sum(self, parts: Sequence[Formula]) -> Formula | None:
        at = random.randrange(len(parts))
        rest = [*parts[:at], *parts[at + 1 :]]
        new = self.language.draw_summand(random)
        more = [*parts, new][: self.language.settings.terms]
        return sum_of(random.choice(([*rest, -parts[at]], [*rest, new], more, rest)))

    # Neighbours

    def neighbours(self, formula: Formula) -> Iterator[Formula]:
        """Every formula of the space one change away."""
        parts = parts_of(formula)
        if not self.language.has_products:
            made: Iterator[Formula | None] = map(Formula.of_base, self._terms_beside(formula.term))
        elif parts is not None:
            made = map(sum_of, self._sums_beside(parts))
        else:
            made = map(self.language.product, self._products_beside(formula))
        for child in made:
            if child is not None and self.language.why_outside(child) is None:
                yield child

    def _terms_beside(self, term: Term) -> Iterator[Term]:
        """The term with another reduction, or with a node replaced, added or removed."""
        for reduction in self.language.reductions:
            if reduction != term.reduction:
                yield Term(reduction, term.expression)
        for expression in changed_expressions(term.expression, self.language.statistics):
            yield Term(term.reduction, expression)

    def _products_beside(self, formula: Formula) -> Iterator[Factors]:
        """The factors with one removed, or with another exponent, reduction, chain or column."""
        factors = self.language.factors_of(formula)
        for at, (atom, exponent) in enumerate(factors):
            yield factors[:at] + factors[at + 1 :]
            for other in self.language.exponents(atom):
                if other != exponent:
                    yield _with(factors, at, (atom, other))
            if isinstance(atom, Term):
                beside: Iterator[Atom] = self._terms_beside(atom)
            else:
                beside = (column for column in self.language.column_factors if column != atom)
            for changed in beside:
                yield _with(factors, at, (changed, exponent))

    def _sums_beside(self, parts: Sequence[Formula]) -> Iterator[list[Formula]]:
        """The parts with one removed, turned, exchanged or added."""
        summands = self.language.summands
        for at, part in enumerate(parts):
            rest = [*parts[:at], *parts[at + 1 :]]
            yield rest
            yield [*rest, -part]
            for other in summands:
                yield [*rest, other.with_sign(part.sign)]
        if len(parts) < self.language.settings.terms:
            for summand in summands:
                for sign in _SIGNS:
                    yield [*parts, summand.with_sign(sign)]


def replace_name(expression: Expression, at: int, name: str) -> Expression:
    """The expression with the node at index `at` of `walk` replaced by the named one."""
    counter = iter(range(1 << 30))

    def rebuild(node: Expression) -> Expression:
        is_it = next(counter) == at
        if isinstance(node, Leaf):
            return Leaf(name) if is_it else node
        if isinstance(node, Apply):
            return Apply(name if is_it else node.operation, rebuild(node.operand))
        left = rebuild(node.left)
        return Combine(name if is_it else node.operation, left, rebuild(node.right))

    return rebuild(expression)


def changed_expressions(expression: Expression, statistics: Sequence[str]) -> Iterator[Expression]:
    """The expression with one node replaced, one unary added, or one unary removed."""
    yield from (Apply(name, expression) for name in UNARIES)
    if isinstance(expression, Leaf):
        names = SIZES if expression.is_size else statistics
        yield from (Leaf(name) for name in names if name != expression.name)
    elif isinstance(expression, Apply):
        yield expression.operand
        yield from (Apply(n, expression.operand) for n in UNARIES if n != expression.operation)
        for operand in changed_expressions(expression.operand, statistics):
            yield Apply(expression.operation, operand)
    else:
        name, left, right = expression.operation, expression.left, expression.right
        yield from (Combine(other, left, right) for other in BINARIES if other != name)
        yield from (
            Combine(name, changed, right) for changed in changed_expressions(left, statistics)
        )
        yield from (
            Combine(name, left, changed) for changed in changed_expressions(right, statistics)
        )


def _with(factors: Factors, at: int, factor: tuple[Atom, Fraction]) -> Factors:
    return [*factors[:at], factor, *factors[at + 1 :]]
