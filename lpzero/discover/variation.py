"""Crossover and mutation of formulas with DEAP's typed trees and operators.

DEAP draws from the global `random`: `as_global_rng` sets its state from our generator and restores
it afterwards. DEAP's one-point crossover picks a type from a set of classes, whose order differs
between processes, so crossover is implemented here, on DEAP's trees, with the types in a fixed
order.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from deap import base, gp

from lpzero.discover.language import Language
from lpzero.discover.settings import EXACT
from primitives.block_sizes import SIZES
from primitives.deap_set import from_names, from_tree, grow, to_tree
from primitives.expressions import Apply, Combine, Expression, Leaf, walk
from primitives.formula import Formula
from primitives.reductions import PAPER_REDUCTIONS
from primitives.registry import BINARIES, UNARIES

_TRIES = 30  # attempts to stay inside the space before returning the parent
_MOST_TREES = 10_000


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


class Variation:
    """Crossover and mutation inside a language; call its methods inside `as_global_rng`."""

    def __init__(self, language: Language) -> None:
        self.language = language
        self._trees: dict[Formula, _Spelled] = {}
        self.toolbox = base.Toolbox()
        self.toolbox.register("subtree", gp.mutUniform, expr=self._grow, pset=None)
        self.toolbox.register("shrink", gp.mutShrink)
        self.toolbox.register("insert", _insert, pset=language.primitive_set)
        self._mutations: list[Callable[[Formula], Formula]] = [
            lambda formula: self._by_tree(self.toolbox.subtree, formula),
            lambda formula: self._by_tree(self.toolbox.shrink, formula),
            lambda formula: self._by_tree(self.toolbox.insert, formula),
            self.point,
            self.point,
            _other_reduction,
        ]
        if language.settings.chains == EXACT:  # all else changes the length of a chain
            self._mutations = [self.point]

    def crossover(self, first: Formula, second: Formula) -> Formula:
        """The first formula with a subtree replaced by one of the second."""
        child, donor = self._spelled(first), self._spelled(second)
        kinds = sorted(child.nodes.keys() & donor.nodes.keys()) or [""]
        return self._inside(lambda: _cross(first, child, donor, kinds), first)

    def mutate(self, formula: Formula) -> Formula:
        """The formula after one mutation of a random kind."""
        return self._inside(lambda: random.choice(self._mutations)(formula), formula)

    def point(self, formula: Formula) -> Formula:
        """The formula with one node replaced by another of the same arity."""
        term = formula.term
        at = random.randrange(term.complexity)
        node = list(walk(term.expression))[at]
        if isinstance(node, Combine):
            name = self.language.draw_binary(random)
        else:
            known = self.language.statistics if isinstance(node, Leaf) else list(UNARIES)
            name = random.choice(known)
        changed = replace_name(term.expression, at, name)
        return Formula.of_term(term.reduction, changed)

    def neighbours(self, formula: Formula) -> Iterator[Formula]:
        """Every formula of the space one change away: a node replaced, added or removed."""
        term = formula.term
        yield _other_reduction(formula)
        for expression in changed_expressions(term.expression, self.language.statistics):
            made = Formula.of_term(term.reduction, expression)
            if self.language.why_outside(made) is None:
                yield made

    def _grow(self, pset: None, type_: type) -> list[Any]:
        longest = max(1, self.language.settings.unaries)
        return grow(self.language.primitive_set, 0, longest, type_)

    def _inside(self, make: Callable[[], Formula], parent: Formula) -> Formula:
        """A new formula inside the space; the parent if many attempts give none."""
        for _ in range(_TRIES):
            made = make()
            if made != parent and self.language.why_outside(made) is None:
                return made
        return parent

    def _by_tree(self, operator: Callable[[Any], tuple[Any]], formula: Formula) -> Formula:
        (changed,) = operator(to_tree(formula, self.language.primitive_set))
        return from_tree(changed)

    def _spelled(self, formula: Formula) -> _Spelled:
        """The formula's tree; parents are the same for many children, so trees are kept."""
        found = self._trees.get(formula)
        if found is None:
            if len(self._trees) >= _MOST_TREES:
                self._trees.clear()
            tree = to_tree(formula, self.language.primitive_set)
            names = tuple(node.name for node in tree)
            subtrees = tuple(tree.searchSubtree(index) for index in range(len(tree)))
            found = self._trees[formula] = _Spelled(names, subtrees, _nodes_by_type(tree))
        return found


class _Spelled(NamedTuple):
    """A DEAP tree: its nodes' names, the slice of the subtree below each, and nodes by type."""

    names: tuple[str, ...]
    subtrees: tuple[slice, ...]
    nodes: dict[str, list[int]]


def _cross(first: Formula, child: _Spelled, donor: _Spelled, kinds: Sequence[str]) -> Formula:
    """The first formula, spelled by `child`, with a subtree of the donor; itself if none fits."""
    kind = random.choice(kinds)
    if not kind:
        return first
    replaced = child.subtrees[random.choice(child.nodes[kind])]
    replacement = donor.subtrees[random.choice(donor.nodes[kind])]
    before, after = child.names[: replaced.start], child.names[replaced.stop :]
    return from_names((*before, *donor.names[replacement], *after))


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


def _nodes_by_type(tree: Any) -> dict[str, list[int]]:
    """The indices of the nodes below the root, by the name of the type they return."""
    nodes: dict[str, list[int]] = {}
    for index, node in enumerate(tree[1:], 1):
        nodes.setdefault(node.ret.__name__, []).append(index)
    return nodes


def _insert(tree: Any, pset: Any) -> tuple[Any]:
    """The tree with a unary inserted above a node; DEAP's own insertion needs scalar terminals."""
    at = random.randrange(1, len(tree))
    kind = tree[at].ret
    tree.insert(at, random.choice([p for p in pset.primitives[kind] if p.args == [kind]]))
    return (tree,)


def _other_reduction(formula: Formula) -> Formula:
    term = formula.term
    other = PAPER_REDUCTIONS[1 - PAPER_REDUCTIONS.index(term.reduction)]
    return Formula.of_term(other, term.expression)
