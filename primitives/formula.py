"""A formula: a sign times a product of powers.

A base is a `Term` (a block expression reduced over positions), a `Column` (any other number per
architecture), a `Constant`, a `Sum` of formulas, or an `Outer` operation that is no power of what
it is taken of.
The paper's form is the case of one term: two branches under one binary operation, summed or
averaged over blocks (`Formula.of`). Text, value, LaTeX and sympy form are folds of a formula
(`fold`); the text says all of it, so formulas are equal if their texts are.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import TypeVar

from primitives.errors import FormulaError
from primitives.expressions import Combine, Expression, Leaf, branch, depth, drop_dead, walk
from primitives.outer import JOINS, OUTER, get_outer, is_dyadic
from primitives.reductions import (
    PAPER_REDUCTIONS,
    POSITION_REDUCTIONS,
    Reduction,
    ReductionFacts,
)
from primitives.registry import BINARIES, UNARIES
from primitives.statistics import SIZES, STATISTICS

MAX_DEPTH = 60  # of an expression, and above the terms; far from Python's limit of recursion
COLUMN_NAME = re.compile(r"[a-z][a-z0-9_]*(?:-[a-z0-9_]+)*\+{0,2}", re.ASCII)
_ONE = Fraction(1)
_T = TypeVar("_T")


class _Text:
    """A value that is compared by its text."""

    __slots__ = ()
    text: str

    def __str__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is type(self) and self.text == other.text)

    def __hash__(self) -> int:
        return hash(self.text)


@dataclass(frozen=True, slots=True, eq=False)
class Term(_Text):
    """A block expression, reduced over positions: one number per network."""

    reduction: Reduction
    expression: Expression
    text: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.reduction not in POSITION_REDUCTIONS:
            names = ", ".join(POSITION_REDUCTIONS)
            raise FormulaError(f"a formula reduces its blocks by {names}, not {self.reduction!r}")
        if depth(self.expression) > MAX_DEPTH:
            raise FormulaError(f"the expression is deeper than {MAX_DEPTH} levels; shorten it")
        object.__setattr__(self, "text", f"{self.reduction}({self.expression})")

    @property
    def complexity(self) -> int:
        """The number of nodes in the expression."""
        return sum(1 for _ in walk(self.expression))

    @property
    def statistics(self) -> tuple[str, ...]:
        """The statistics that the value depends on, in the order of the text."""
        return tuple(leaf.name for leaf in self._leaves() if not leaf.is_size)

    @property
    def sizes(self) -> tuple[str, ...]:
        """The sizes that the value depends on, in the order of the text."""
        return tuple(leaf.name for leaf in self._leaves() if leaf.is_size)

    @property
    def positions(self) -> ReductionFacts:
        """What is declared of the term's reduction."""
        return POSITION_REDUCTIONS[self.reduction]

    def _leaves(self) -> list[Leaf]:
        alive = drop_dead(self.expression)
        nodes = [] if alive is None else walk(alive)
        return list(dict.fromkeys(node for node in nodes if isinstance(node, Leaf)))


@dataclass(frozen=True, slots=True, eq=False)
class Column(_Text):
    """A number per architecture by name: a counter, a hand-made proxy, a measurement."""

    name: str
    text: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or COLUMN_NAME.fullmatch(self.name) is None:
            raise FormulaError(
                f"{self.name!r} cannot be a column's name; use lower-case words joined by"
                " hyphens or underscores"
            )
        if is_reserved(self.name):
            raise FormulaError(f"{self.name!r} is a word of the language; rename the column")
        object.__setattr__(self, "text", self.name)

    @property
    def complexity(self) -> int:
        """A column counts as one node."""
        return 1


@dataclass(frozen=True, slots=True, eq=False)
class Constant(_Text):
    """A number above zero: a weight or a centre, to the digits that its text has."""

    value: float
    text: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not 0 < self.value < math.inf:
            raise FormulaError(f"{self.value!r} cannot be a constant; use a number above 0")
        object.__setattr__(self, "text", f"{self.value:.12g}")
        object.__setattr__(self, "value", float(self.text))

    @property
    def complexity(self) -> int:
        """A constant counts as one node."""
        return 1


@dataclass(frozen=True, slots=True, eq=False)
class Outer(_Text):
    """An outer operation that is no power of its operand: log, abs, a root of a product."""

    operation: str
    operand: Formula
    text: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        get_outer(self.operation)
        if self.operand.sign < 0:
            raise FormulaError(f"{self.operand} has a sign; a formula has one sign, in front")
        object.__setattr__(self, "text", f"{self.operation}({self.operand})")

    @property
    def complexity(self) -> int:
        """The nodes of the operand and one more."""
        return 1 + self.operand.complexity


@dataclass(frozen=True, slots=True, eq=False)
class Sum(_Text):
    """Two or more formulas added, or subtracted where their sign is -1; the first has sign +1."""

    parts: tuple[Formula, ...]
    text: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if len(self.parts) < 2 or not any(part.sign > 0 for part in self.parts):
            raise FormulaError("a sum has two or more parts, one of them with sign +1")
        object.__setattr__(self, "text", _sum(self, str, _call))

    @property
    def complexity(self) -> int:
        """The nodes of the parts, and those that add and subtract them."""
        return _sum(self, lambda part: part.complexity, lambda _, nodes: 1 + sum(nodes))

    def signed(self, sign: int) -> list[Formula]:
        """The parts that have that sign."""
        return [part for part in self.parts if part.sign == sign]


Atom = Term | Column
AtomOrConstant = Term | Column | Constant
Base = Term | Column | Constant | Sum | Outer


@dataclass(frozen=True, slots=True)
class Power:
    """A base to an exponent that squares, roots and inverses make; `texts` are its factors."""

    base: Base
    exponent: Fraction = _ONE
    texts: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not is_dyadic(self.exponent):
            raise FormulaError(f"no squares and roots make a power of {self.exponent}")
        texts, base = [], self.base.text
        for chain in chains(self.exponent):
            text = base
            for operation in chain:
                text = f"{operation}({text})"
            texts.append(text)
        object.__setattr__(self, "texts", tuple(texts))


@dataclass(frozen=True, slots=True, eq=False)
class Formula(_Text):
    """sign (+1 or -1) times powers of distinct bases, in the order of the text."""

    sign: int
    powers: tuple[Power, ...]
    text: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.sign not in (1, -1):
            raise FormulaError(f"a formula's sign is 1 or -1, not {self.sign!r}")
        n = len(self.powers)
        if (n != 1 and len({power.base.text for power in self.powers}) != n) or not n:
            raise FormulaError("a formula has one power or more, each of another base")
        texts = [text for power in self.powers for text in power.texts]
        text = texts[0] if len(texts) == 1 else _call("mul", texts)
        # A level has a bracket: most texts have too few of them to be counted level by level.
        if text.count("(") >= MAX_DEPTH and self.depth > MAX_DEPTH:
            raise FormulaError(f"the formula is deeper than {MAX_DEPTH} levels; shorten it")
        object.__setattr__(self, "text", f"-{text}" if self.sign < 0 else text)

    @classmethod
    def of(
        cls,
        operation: str,
        left: tuple[str, Sequence[str]],
        right: tuple[str, Sequence[str]],
        reduction: Reduction = "sum",
        sign: int = 1,
    ) -> Formula:
        """The paper's form: two (statistic, chain) branches under one binary operation."""
        first, second = branch(left[0], *left[1]), branch(right[0], *right[1])
        return cls.of_term(reduction, Combine(operation, first, second), sign)

    @classmethod
    def of_term(cls, reduction: Reduction, expression: Expression, sign: int = 1) -> Formula:
        """The formula of one term."""
        return cls(sign, (Power(Term(reduction, expression)),))

    @classmethod
    def of_base(cls, base: Base, sign: int = 1) -> Formula:
        """The formula that is the base itself."""
        return cls(sign, (Power(base),))

    def __neg__(self) -> Formula:
        return Formula(-self.sign, self.powers)

    def with_sign(self, sign: int) -> Formula:
        """The formula with that sign instead of its own."""
        return self if self.sign == sign else -self

    def apply(self, operation: str) -> Formula:
        """The outer operation on the formula, as powers wherever that is the same number."""
        exponent = get_outer(operation).exponent
        if self.sign > 0 and exponent is not None and self._can_have(exponent):
            return Formula(1, tuple(Power(p.base, p.exponent * exponent) for p in self.powers))
        return Formula.of_base(Outer(operation, self))

    def _can_have(self, exponent: Fraction) -> bool:
        # The root of x^2 is |x|, and that of a product exists where two factors are negative.
        is_odd = len(self.powers) == 1 and self.powers[0].exponent.numerator % 2 == 1
        return exponent.denominator == 1 or is_odd

    @property
    def is_term(self) -> bool:
        """True if the formula is a single term, as in the paper's form."""
        first = self.powers[0]
        return len(self.powers) == 1 and type(first.base) is Term and first.exponent == 1

    @property
    def is_papers(self) -> bool:
        """True for the paper's form: one sum or mean over blocks, of statistics alone."""
        return self.is_term and self.term.reduction in PAPER_REDUCTIONS and not self.sizes

    @property
    def term(self) -> Term:
        """The single term; raises FormulaError if the formula is anything else."""
        base = self.powers[0].base
        if not self.is_term or not isinstance(base, Term):
            raise FormulaError(f"{self} has several terms; expected a formula of one term")
        return base

    @property
    def atoms(self) -> tuple[Atom, ...]:
        """The distinct terms and columns, in the order of the text."""
        return tuple(dict.fromkeys(_atoms(self)))

    @property
    def terms(self) -> tuple[Term, ...]:
        """The distinct terms, in the order of the text."""
        return tuple(atom for atom in self.atoms if isinstance(atom, Term))

    @property
    def columns(self) -> tuple[str, ...]:
        """The distinct names of columns, in the order of the text."""
        return tuple(atom.name for atom in self.atoms if isinstance(atom, Column))

    @property
    def statistics(self) -> tuple[str, ...]:
        """The statistics that the terms depend on, in the order of the text."""
        return tuple(dict.fromkeys(name for term in self.terms for name in term.statistics))

    @property
    def sizes(self) -> tuple[str, ...]:
        """The sizes that the terms depend on, in the order of the text."""
        return tuple(dict.fromkeys(name for term in self.terms for name in term.sizes))

    @property
    def complexity(self) -> int:
        """The nodes above the terms, and those in the terms' expressions."""
        nodes = [
            p.base.complexity + len(chain) for p in self.powers for chain in chains(p.exponent)
        ]
        return nodes[0] if len(nodes) == 1 else 1 + sum(nodes)

    @property
    def depth(self) -> int:
        """Nodes on the longest way from the root to a term."""
        if self.is_term:
            return 1
        return fold(self, lambda _: 1, lambda _, x: 1 + x, lambda _, values: 1 + max(values))


def multiply(formulas: Iterable[Formula]) -> Formula:
    """The product: one power per base, in the order they are first met; x^0 is x times 1/x."""
    sign, exponents = 1, dict[Base, Fraction]()
    for formula in formulas:
        sign *= formula.sign
        for power in formula.powers:
            exponents[power.base] = exponents.get(power.base, Fraction(0)) + power.exponent
    return Formula(sign, tuple(Power(base, exponent) for base, exponent in exponents.items()))


def add(formulas: Iterable[Formula]) -> Formula:
    """The sum; sums among its parts are opened, and a sign that all parts have goes in front."""
    parts = [part for formula in formulas for part in summands(formula)]
    sign = 1 if any(part.sign > 0 for part in parts) else -1
    if len(parts) == 1:
        return parts[0]
    ordered = [part for of in (sign, -sign) for part in parts if part.sign == of]
    return Formula.of_base(Sum(tuple(p if sign > 0 else -p for p in ordered)), sign)


def summands(formula: Formula) -> Iterator[Formula]:
    """The signed parts of a sum; the formula itself if it is none."""
    first = formula.powers[0]
    if len(formula.powers) > 1 or first.exponent != 1 or not isinstance(first.base, Sum):
        yield formula
        return
    for part in first.base.parts:
        yield part if formula.sign > 0 else -part


def fold(
    formula: Formula,
    atom: Callable[[AtomOrConstant], _T],
    apply: Callable[[str, _T], _T],
    join: Callable[[str, list[_T]], _T],
) -> _T:
    """The formula without its sign, put together from the results for terms, columns, constants.

    `apply` gives the result of an outer operation, `join` that of mul, add or sub, both by name.
    """
    results: list[_T] = []
    for power in formula.powers:
        base = fold_base(power.base, atom, apply, join)
        for chain in chains(power.exponent):
            result = base
            for operation in chain:
                result = apply(operation, result)
            results.append(result)
    return results[0] if len(results) == 1 else join("mul", results)


def fold_base(
    base: Base,
    atom: Callable[[AtomOrConstant], _T],
    apply: Callable[[str, _T], _T],
    join: Callable[[str, list[_T]], _T],
) -> _T:
    """The base put together as `fold` does."""
    if isinstance(base, Sum):
        return _sum(base, lambda part: fold(part, atom, apply, join), join)
    if isinstance(base, Outer):
        return apply(base.operation, fold(base.operand, atom, apply, join))
    return atom(base)


def _sum(total: Sum, of: Callable[[Formula], _T], join: Callable[[str, list[_T]], _T]) -> _T:
    """What is added first, then what is subtracted, as one difference of two sums."""
    sides = []
    for sign in (1, -1):
        parts = [of(part.with_sign(1)) for part in total.signed(sign)]
        if parts:
            sides.append(parts[0] if len(parts) == 1 else join("add", parts))
    return sides[0] if len(sides) == 1 else join("sub", sides)


def chains(exponent: Fraction) -> tuple[tuple[str, ...], ...]:
    """The power as factors, the largest first: each a chain of operations on the base.

    >>> chains(Fraction(-3, 4))
    (('sqrt', 'inverse'), ('sqrt', 'sqrt', 'inverse'))
    """
    return _chains(exponent.numerator, exponent.denominator)  # hashing a fraction takes long


@lru_cache(maxsize=1024)
def _chains(signed: int, denominator: int) -> tuple[tuple[str, ...], ...]:
    if not signed:
        return (), ("inverse",)
    numerator, last = abs(signed), () if signed > 0 else ("inverse",)
    roots = denominator.bit_length() - 1
    bits = [bit for bit in range(numerator.bit_length() - 1, -1, -1) if numerator >> bit & 1]
    steps = (bit - roots for bit in bits)
    return tuple((*(("square" if n > 0 else "sqrt",) * abs(n)), *last) for n in steps)


def formulas_within(formula: Formula) -> Iterator[Formula]:
    """The formula and all that stand in its sums and outer operations, the outermost first."""
    yield formula
    for power in formula.powers:
        if isinstance(power.base, Outer):
            yield from formulas_within(power.base.operand)
        elif isinstance(power.base, Sum):
            for part in power.base.parts:
                yield from formulas_within(part)


def operations(formula: Formula) -> set[str]:
    """The names of the outer operations in the formula."""
    names: set[str] = set()
    for part in formulas_within(formula):
        for power in part.powers:
            names.update(name for chain in chains(power.exponent) for name in chain)
            names.update({power.base.operation} if isinstance(power.base, Outer) else ())
    return names


def is_reserved(name: str) -> bool:
    """True for every word of the language, which no column may have as its name."""
    words = (UNARIES, BINARIES, STATISTICS, SIZES, POSITION_REDUCTIONS, OUTER, JOINS)
    return any(name in of for of in words)


def _atoms(formula: Formula) -> list[Atom]:
    atoms: list[Atom] = []
    for power in formula.powers:
        if isinstance(power.base, Outer):
            atoms += _atoms(power.base.operand)
        elif isinstance(power.base, Sum):
            for sign in (1, -1):
                for part in power.base.signed(sign):
                    atoms += _atoms(part)
        elif not isinstance(power.base, Constant):
            atoms.append(power.base)
    return atoms


def _apply(operation: str, text: str) -> str:
    return f"{operation}({text})"


def _call(operation: str, texts: list[str]) -> str:
    return f"{operation}({', '.join(texts)})"
