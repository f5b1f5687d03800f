"""The surviving formulas of the paper's space, as families of branches.

A formula is two branches under a binary operation, so pruning is decided chain by chain: 441 chains
per statistic represent the 11,668,860 formulas with chains of two. A family is a Cartesian product
of branches, which a branch table evaluates by matrix algebra.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, combinations_with_replacement, product

from primitives.canonical import canonical_part
from primitives.errors import FormulaError
from primitives.expressions import Apply, Combine, Expression, Leaf, branch, chain_of, drop_dead
from primitives.facts import Meeting, facts, meeting
from primitives.formula import Formula, Term
from primitives.properties import Kind, on_change
from primitives.pruning import DEFAULT_RULES, check_expression, check_term, has_zero_mean
from primitives.reductions import Reduction
from primitives.registry import UNARIES, get_binary
from primitives.statistics import STATISTICS

MAX_UNARIES = 3  # 9,261 chains per statistic; beyond this the space is searched, not enumerated


@dataclass(frozen=True, slots=True)
class Branch:
    """A statistic with its chain (operations in the order applied), and the kind of the result."""

    statistic: str
    chain: tuple[str, ...]
    kind: Kind

    @property
    def expression(self) -> Expression:
        return branch(self.statistic, *self.chain)

    def averaged(self) -> Branch:
        """The branch with a mean at its end."""
        return replace(self, chain=(*self.chain, "mean"), kind=Kind.SCALAR)


Branches = tuple[Branch, ...]


@dataclass(frozen=True, slots=True)
class Family:
    """Every left branch with every right branch under one operation: all distinct, up to sign.

    One-sided formulas have operation None and no right branches. In an `unordered` family both
    sides are the same branches and each pair counts once; `sub` then omits equal ones.
    """

    operation: str | None
    left: Branches
    right: Branches = ()
    unordered: bool = False

    @property
    def sides(self) -> tuple[Branches, ...]:
        """Its left branches and, if it has them, its right ones; each side of one statistic."""
        return tuple(side for side in (self.left, self.right) if side)

    def pairs(self) -> Iterator[tuple[Branch, Branch]]:
        """The pairs of a two-sided family; the right branch varies fastest."""
        if not self.unordered:
            return product(self.left, self.right)
        choose = combinations if self.operation == "sub" else combinations_with_replacement
        return iter(choose(self.left, 2))

    def __len__(self) -> int:
        n = len(self.left)
        if self.operation is None:
            return n
        if not self.unordered:
            return n * len(self.right)
        return n * (n - 1) // 2 if self.operation == "sub" else n * (n + 1) // 2

    def formulas(self, reduction: Reduction = "sum") -> Iterator[Formula]:
        """The family's formulas one by one."""
        if self.operation is None:
            yield from (Formula.of_term(reduction, b.expression) for b in self.left)
            return
        for a, b in self.pairs():
            yield Formula.of_term(reduction, Combine(self.operation, a.expression, b.expression))


@dataclass(frozen=True, slots=True)
class Survivors:
    """The distinct surviving branches of one statistic, up to sign.

    `terms`: for sums and products of means, where a mean at the end is redundant and omitted.
    `alone`: those of them that are valid on their own. `matrices`: for products of aligned
    matrices. `averages`: the matrices whose mean is also a branch.
    """

    terms: Branches
    alone: Branches
    matrices: Branches
    averages: Branches


def statistic_pairs(same_statistic: bool = False) -> list[tuple[str, str]]:
    """The unordered pairs of statistics: 15 distinct ones, 21 with each statistic itself."""
    choose = combinations_with_replacement if same_statistic else combinations
    return list(choose(STATISTICS, 2))


def chains(unaries: int) -> Iterator[tuple[str, ...]]:
    """Every chain of exactly `unaries` operations; identities make the shorter ones."""
    if not 1 <= unaries <= MAX_UNARIES:
        raise FormulaError(f"chains of {unaries} cannot be enumerated; choose 1 to {MAX_UNARIES}")
    return product(UNARIES, repeat=unaries)


@lru_cache(maxsize=128)
def surviving_branches(
    statistic: str, unaries: int, rules: frozenset[str] = DEFAULT_RULES
) -> Survivors:
    """The branches of a statistic that pruning keeps, each once."""
    parts: dict[Expression, None] = {}
    for chain in chains(unaries):
        expression = drop_dead(branch(statistic, *chain))
        if expression is not None and check_expression(expression, rules) is None:
            parts[canonical_part(expression)[1]] = None
    terms = {_without_mean(part): None for part in parts}
    alone = [term for term in terms if check_term(Term("sum", term), rules) is None]
    matrices = [part for part in parts if facts(part).kind is Kind.MATRIX]
    averages = [part for part in matrices if Apply("mean", part) in parts]
    return Survivors(*(tuple(map(_branch, of)) for of in (terms, alone, matrices, averages)))


on_change(surviving_branches.cache_clear)


def families(
    unaries: int, same_statistic: bool = False, rules: frozenset[str] = DEFAULT_RULES
) -> Iterator[Family]:
    """The pruned and deduplicated space for one reduction, as disjoint families."""
    for statistic in STATISTICS:
        yield Family(None, surviving_branches(statistic, unaries, rules).alone)
    for left, right in statistic_pairs(same_statistic):
        a = surviving_branches(left, unaries, rules)
        b = surviving_branches(right, unaries, rules)
        how = meeting(facts(Leaf(left)), facts(Leaf(right)), get_binary("mul"))
        aligned = how is not Meeting.MEANS
        made = [
            *_sums(a, b, rules),
            *(_aligned(a, b, rules) if aligned else _products_of_means(a.terms, b.terms, rules)),
        ]
        yield from (family for family in made if len(family))


def _sums(a: Survivors, b: Survivors, rules: frozenset[str]) -> Iterator[Family]:
    left, right = (_with_mean(s.terms, "zero-term" in rules) for s in (a, b))
    for operation in ("add", "sub"):
        yield Family(operation, left, right, a is b)


def _products_of_means(
    left: Branches, right: Branches, rules: frozenset[str], unordered: bool = False
) -> Iterator[Family]:
    """mean(F)·mean(G): the value of mul and matmul unless both operands are aligned matrices."""
    drop = "constant" in rules
    yield Family("mul", _with_mean(left, drop), _with_mean(right, drop), unordered)


def _aligned(a: Survivors, b: Survivors, rules: frozenset[str]) -> Iterator[Family]:
    """mul and matmul of matrices that correspond one to one, and products with their scalars."""
    same = a is b
    yield Family("mul", a.matrices, b.matrices, same)
    yield Family("matmul", a.matrices, b.matrices)
    scalars = [tuple(t for t in s.terms if t.kind is Kind.SCALAR) for s in (a, b)]
    flat = [tuple(t for t in s.terms if t.kind is Kind.MATRIX) for s in (a, b)]
    yield from _products_of_means(scalars[0], scalars[1], rules, same)
    yield from _products_of_means(scalars[0], flat[1], rules)
    if not same:
        yield from _products_of_means(flat[0], scalars[1], rules)
    # Two matrices are combined as scalars if the mean of one is a branch; it is written on the
    # left if possible.
    means = [tuple(m.averaged() for m in s.averages) for s in (a, b)]
    plain = tuple(m for m in flat[0] if m not in a.averages)
    if same:
        yield from _products_of_means(means[0], means[0], rules, unordered=True)
        yield from _products_of_means(means[0], plain, rules)
    else:
        yield from _products_of_means(means[0], flat[1], rules)
        yield from _products_of_means(plain, means[1], rules)


def _with_mean(branches: Branches, drop_zero_means: bool) -> Branches:
    if not drop_zero_means:
        return branches
    return tuple(b for b in branches if not has_zero_mean(b.expression))


def _without_mean(expression: Expression) -> Expression:
    if isinstance(expression, Apply) and expression.operation == "mean":
        return expression.operand
    return expression


def _branch(expression: Expression) -> Branch:
    chain = chain_of(expression)
    if chain is None:
        raise FormulaError(f"{expression} is not a branch; expected a statistic and its chain")
    return Branch(*chain, facts(expression).kind)
