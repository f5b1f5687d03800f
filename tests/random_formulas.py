"""Random chains, expressions and formulas, for the property tests of every package."""

from __future__ import annotations

from random import Random

from primitives.expressions import Apply, Combine, Expression, Leaf
from primitives.formula import REDUCTIONS, Formula
from primitives.registry import BINARIES, UNARIES
from primitives.statistics import STATISTICS


def random_formula(rng: Random, max_unaries: int = 2) -> Formula:
    """A formula of the paper's form: two branches of up to `max_unaries` operations each."""
    left, right = (
        (rng.choice(list(STATISTICS)), rng.choices(list(UNARIES), k=rng.randint(0, max_unaries)))
        for _ in range(2)
    )
    operation = rng.choice(list(BINARIES))
    return Formula.of(operation, left, right, rng.choice(REDUCTIONS), rng.choice((1, -1)))


def random_tree(rng: Random, depth: int) -> Formula:
    """A formula over any expression of at most that depth."""
    return Formula(_grow(rng, depth), rng.choice(REDUCTIONS), rng.choice((1, -1)))


def random_chain(rng: Random, length: int) -> list[str]:
    """Unary operations in the order applied."""
    return [rng.choice(list(UNARIES)) for _ in range(length)]


def random_live_formula(rng: Random, depth: int) -> Formula:
    """A formula over an expression of at most that depth in which nothing is disconnected."""
    return Formula(_grow_live(rng, depth), rng.choice(REDUCTIONS), rng.choice((1, -1)))


def _grow(rng: Random, depth: int) -> Expression:
    draw = rng.random()
    if depth <= 1 or draw < 0.15:
        return Leaf(rng.choice(list(STATISTICS)))
    if draw < 0.65:
        return Apply(rng.choice(list(UNARIES)), _grow(rng, depth - 1))
    return Combine(rng.choice(list(BINARIES)), _grow(rng, depth - 1), _grow(rng, depth - 1))


def _grow_live(rng: Random, depth: int) -> Expression:
    if depth == 0 or rng.random() < 0.15:
        return Leaf(rng.choice(list(STATISTICS)))
    if rng.random() < 0.6:
        alive = [name for name in UNARIES if name != "disconnect"]
        return Apply(rng.choice(alive), _grow_live(rng, depth - 1))
    return Combine(
        rng.choice(list(BINARIES)), _grow_live(rng, depth - 1), _grow_live(rng, depth - 1)
    )
