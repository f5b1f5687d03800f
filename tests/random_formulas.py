"""Random chains, expressions and formulas, for the property tests of every package."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from primitives.expressions import Apply, Combine, Expression, Leaf
from primitives.formula import Column, Formula, Term, add, multiply
from primitives.outer import OUTER
from primitives.reductions import PAPER_REDUCTIONS, POSITION_REDUCTIONS
from primitives.registry import BINARIES, UNARIES
from primitives.statistics import SIZES, STATISTICS

COLUMNS = ("depth", "depth-sqrt-width", "val_accuracy", "dss++")


def random_formula(rng: Random, max_unaries: int = 2) -> Formula:
    """A formula of the paper's form: two branches of up to `max_unaries` operations each."""
    left, right = (
        (rng.choice(list(STATISTICS)), rng.choices(list(UNARIES), k=rng.randint(0, max_unaries)))
        for _ in range(2)
    )
    operation = rng.choice(list(BINARIES))
    return Formula.of(operation, left, right, rng.choice(PAPER_REDUCTIONS), rng.choice((1, -1)))


def random_tree(rng: Random, depth: int) -> Formula:
    """A formula over any expression of at most that depth."""
    return _of_term(rng, _grow(rng, depth, list(STATISTICS)))


def random_chain(rng: Random, length: int) -> list[str]:
    """Unary operations in the order applied."""
    return [rng.choice(list(UNARIES)) for _ in range(length)]


def random_live_formula(rng: Random, depth: int) -> Formula:
    """A formula over an expression of at most that depth in which nothing is disconnected."""
    return _of_term(rng, _grow_live(rng, depth))


def _of_term(rng: Random, expression: Expression) -> Formula:
    return Formula.of_term(rng.choice(PAPER_REDUCTIONS), expression, rng.choice((1, -1)))


def _grow(rng: Random, depth: int, leaves: Sequence[str]) -> Expression:
    draw = rng.random()
    if depth <= 1 or draw < 0.15:
        return Leaf(rng.choice(leaves))
    if draw < 0.65:
        return Apply(rng.choice(list(UNARIES)), _grow(rng, depth - 1, leaves))
    operation = rng.choice(list(BINARIES))
    left, right = (_grow(rng, depth - 1, leaves) for _ in range(2))
    return Combine(operation, left, right)


def _grow_live(rng: Random, depth: int) -> Expression:
    if depth == 0 or rng.random() < 0.15:
        return Leaf(rng.choice(list(STATISTICS)))
    if rng.random() < 0.6:
        alive = [name for name in UNARIES if name != "disconnect"]
        return Apply(rng.choice(alive), _grow_live(rng, depth - 1))
    return Combine(
        rng.choice(list(BINARIES)), _grow_live(rng, depth - 1), _grow_live(rng, depth - 1)
    )


def random_score(rng: Random, depth: int = 3, columns: Sequence[str] = COLUMNS) -> Formula:
    """A formula over any tree of terms and columns; at depth 1 a single term or column."""
    return _grow_score(rng, depth, columns).with_sign(rng.choice((1, -1)))


def random_term(rng: Random, depth: int = 3) -> Term:
    """A term with any reduction over any expression of statistics and sizes."""
    reduction = rng.choice(list(POSITION_REDUCTIONS))
    leaves = [*STATISTICS, *SIZES]
    if POSITION_REDUCTIONS[reduction].end is not None:
        leaves = [name for name in leaves if (STATISTICS.get(name) or SIZES[name]).at_ends]
    return Term(reduction, _grow(rng, depth, leaves))


def _grow_score(rng: Random, depth: int, columns: Sequence[str]) -> Formula:
    draw = rng.random()
    if depth <= 1 or draw < 0.1:
        is_column = columns and rng.random() < 0.2
        return Formula.of_base(Column(rng.choice(columns)) if is_column else random_term(rng))
    if draw < 0.5:
        operation = rng.choice(list(OUTER))
        return _grow_score(rng, depth - 1, columns).apply(operation)
    operation = rng.choice(("mul", "mul", "mul", "add", "sub"))
    n = 2 if operation == "sub" else rng.randint(2, 3)
    operands = [_grow_score(rng, depth - 1, columns) for _ in range(n)]
    if operation == "mul":
        return multiply(operands)
    return add(operands if operation == "add" else (operands[0], -operands[1]))
