"""A formula of several terms: products of terms under outer operations, and a sign.

A term is one number per network: a `Formula` (a reduction over positions) or a `Column` (any other
number per architecture). Outer operations are plain mathematics on one number: where one is not
defined (the root or logarithm of a negative, one over zero) there is no score.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from primitives.block_sizes import SIZES
from primitives.errors import FormulaError, UnknownPrimitiveError, did_you_mean
from primitives.formula import MAX_DEPTH, Formula
from primitives.reductions import POSITION_REDUCTIONS
from primitives.registry import BINARIES, UNARIES
from primitives.statistics import STATISTICS

SIGNED_LOG = "signed_log"  # sgn(x) log(1 + |x|), for numbers that may change sign
TRANSFORMS = ("sqrt", "square", "inverse", "abs", "log", SIGNED_LOG)
JOINS = ("mul", "add", "sub")
COLUMN_NAME = re.compile(r"[a-z][a-z0-9_]*(?:-[a-z0-9_]+)*\+{0,2}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Column:
    """A number per architecture by name: a counter, a hand-made proxy, a measurement."""

    name: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or COLUMN_NAME.fullmatch(self.name) is None:
            raise FormulaError(
                f"{self.name!r} cannot be a column's name; use lower-case words joined by"
                " hyphens or underscores"
            )
        if is_reserved(self.name):
            raise FormulaError(f"{self.name!r} is a word of the language; rename the column")

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Transform:
    """An outer operation on one number per network."""

    operation: str
    operand: ScoreTree

    def __post_init__(self) -> None:
        _check_operation(self.operation, TRANSFORMS)
        _check_operand(self.operand)

    def __str__(self) -> str:
        return f"{self.operation}({self.operand})"


@dataclass(frozen=True, slots=True)
class Join:
    """A product or sum of two or more numbers per network, or a difference of two."""

    operation: str
    operands: tuple[ScoreTree, ...]

    def __post_init__(self) -> None:
        _check_operation(self.operation, JOINS)
        if len(self.operands) < 2 or (self.operation == "sub" and len(self.operands) > 2):
            takes = "two" if self.operation == "sub" else "two or more"
            raise FormulaError(f"{self.operation} takes {takes} operands, not {len(self.operands)}")
        for operand in self.operands:
            _check_operand(operand)

    def __str__(self) -> str:
        return f"{self.operation}({', '.join(map(str, self.operands))})"


ScoreTree = Formula | Column | Transform | Join


@dataclass(frozen=True, slots=True)
class Score:
    """tree over terms and columns, times sign (+1 or -1)."""

    tree: ScoreTree
    sign: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.tree, Formula):
            raise FormulaError(f"{self.tree} is a single term: a Formula, not a Score")
        if self.sign not in (1, -1):
            raise FormulaError(f"a score's sign is 1 or -1, not {self.sign!r}")
        if tree_depth(self.tree) > MAX_DEPTH:
            raise FormulaError(f"the score is deeper than {MAX_DEPTH} levels; shorten it")

    def __str__(self) -> str:
        return f"{'-' if self.sign < 0 else ''}{self.tree}"

    def __neg__(self) -> Score:
        return Score(self.tree, -self.sign)

    @property
    def complexity(self) -> int:
        """The nodes above the terms, and those in the terms' expressions."""
        return sum(node.complexity if isinstance(node, Formula) else 1 for node in nodes(self.tree))

    @property
    def terms(self) -> tuple[Formula, ...]:
        """The distinct terms, each with sign +1, in the order of the text."""
        return tuple(dict.fromkeys(n for n in nodes(self.tree) if isinstance(n, Formula)))

    @property
    def columns(self) -> tuple[str, ...]:
        """The distinct names of columns, in the order of the text."""
        return tuple(dict.fromkeys(n.name for n in nodes(self.tree) if isinstance(n, Column)))

    @property
    def statistics(self) -> tuple[str, ...]:
        """The statistics that the terms depend on, in the order of the text."""
        return tuple(dict.fromkeys(name for term in self.terms for name in term.statistics))

    @property
    def sizes(self) -> tuple[str, ...]:
        """The sizes that the terms depend on, in the order of the text."""
        return tuple(dict.fromkeys(name for term in self.terms for name in term.sizes))


AnyFormula = Formula | Score


def signed(tree: ScoreTree, sign: int = 1) -> AnyFormula:
    """The tree as a whole: a `Formula` if it is a single term, else a `Score`."""
    if isinstance(tree, Formula):
        return tree if sign > 0 else -tree
    return Score(tree, sign)


def with_sign(formula: AnyFormula, sign: int) -> AnyFormula:
    """The formula with that sign instead of its own."""
    return formula if formula.sign == sign else -formula


def operands(tree: ScoreTree) -> tuple[ScoreTree, ...]:
    """The trees directly below this one; a term has none."""
    if isinstance(tree, Transform):
        return (tree.operand,)
    return tree.operands if isinstance(tree, Join) else ()


def nodes(tree: ScoreTree) -> Iterator[ScoreTree]:
    """Every node down to the terms, the root first, left before right."""
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(operands(node)))


def tree_depth(tree: ScoreTree) -> int:
    """Nodes on the longest way from the root to a term."""
    deepest, stack = 0, [(tree, 1)]
    while stack:
        node, level = stack.pop()
        deepest = max(deepest, level)
        stack.extend((child, level + 1) for child in operands(node))
    return deepest


def is_reserved(name: str) -> bool:
    """True for every word of the language, which no column may have as its name."""
    words = (UNARIES, BINARIES, STATISTICS, SIZES, POSITION_REDUCTIONS, TRANSFORMS)
    return any(name in of for of in words)


def _check_operation(name: str, known: tuple[str, ...]) -> None:
    if name not in known:
        raise UnknownPrimitiveError(f"no operation {name!r} on terms; {did_you_mean(name, known)}")


def _check_operand(operand: ScoreTree) -> None:
    if isinstance(operand, Formula) and operand.sign < 0:
        raise FormulaError(f"the term {operand} has a sign; a score has one sign, in front")
