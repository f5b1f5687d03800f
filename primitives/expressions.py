"""Expression trees: statistics and sizes at the leaves, unary and binary applications above them.

Nodes are frozen and hashable; they know names only, the registry knows what the names mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from primitives.errors import FormulaError
from primitives.properties import REALS, Gives
from primitives.registry import get_binary, get_unary
from primitives.statistics import SIZES, get_statistic


@dataclass(frozen=True, slots=True)
class Leaf:
    """A statistic, or a size of the block."""

    name: str

    def __post_init__(self) -> None:
        if not self.is_size:
            get_statistic(self.name)

    @property
    def is_size(self) -> bool:
        return self.name in SIZES

    @property
    def statistic(self) -> str:
        """The statistic's name; raises FormulaError for a size."""
        if self.is_size:
            raise FormulaError(f"{self.name} is a size of the block, not a statistic")
        return self.name

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Apply:
    """A unary operation on an expression."""

    operation: str
    operand: Expression

    def __post_init__(self) -> None:
        get_unary(self.operation)

    def __str__(self) -> str:
        return f"{self.operation}({self.operand})"


@dataclass(frozen=True, slots=True)
class Combine:
    """A binary operation on two expressions."""

    operation: str
    left: Expression
    right: Expression

    def __post_init__(self) -> None:
        get_binary(self.operation)

    def __str__(self) -> str:
        return f"{self.operation}({self.left}, {self.right})"


Expression = Leaf | Apply | Combine


def branch(leaf: str, *chain: str) -> Expression:
    """The statistic or size after its unary chain, the first operation applied first.

    >>> str(branch("H", "inverse", "square"))
    'square(inverse(H))'
    """
    expression: Expression = Leaf(leaf)
    for operation in chain:
        expression = Apply(operation, expression)
    return expression


def chain_of(expression: Expression) -> tuple[str, tuple[str, ...]] | None:
    """(statistic or size, chain) of a branch; None for anything with a binary in it."""
    chain: list[str] = []
    while isinstance(expression, Apply):
        chain.append(expression.operation)
        expression = expression.operand
    if isinstance(expression, Combine):
        return None
    return expression.name, tuple(reversed(chain))


def children(expression: Expression) -> tuple[Expression, ...]:
    """The expressions directly below this one."""
    if isinstance(expression, Apply):
        return (expression.operand,)
    if isinstance(expression, Combine):
        return (expression.left, expression.right)
    return ()


def walk(expression: Expression) -> Iterator[Expression]:
    """Every node, the root first, left before right."""
    stack = [expression]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(children(node)))


def depth(expression: Expression) -> int:
    """Nodes on the longest way from the root to a leaf."""
    deepest, stack = 0, [(expression, 1)]
    while stack:  # every formula is measured when it is made, so this is written out
        node, level = stack.pop()
        while isinstance(node, Apply):
            node, level = node.operand, level + 1
        if isinstance(node, Combine):
            stack += ((node.left, level + 1), (node.right, level + 1))
        deepest = max(deepest, level)
    return deepest


def drop_dead(expression: Expression) -> Expression | None:
    """The expression without disconnected branches and identities; None if nothing is left."""
    if isinstance(expression, Leaf):
        return expression
    if isinstance(expression, Apply):
        traits = get_unary(expression.operation).traits
        if traits.gives is Gives.NOTHING:
            return None
        operand = drop_dead(expression.operand)
        if operand is None or traits.fixes == REALS:
            return operand
        return Apply(expression.operation, operand)
    left, right = drop_dead(expression.left), drop_dead(expression.right)
    if left is None or right is None:
        return right if left is None else left
    return Combine(expression.operation, left, right)
