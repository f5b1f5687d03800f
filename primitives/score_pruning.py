"""Predictive pruning above the terms: scores that need no evaluation, each with its rule.

The rules read declared properties and ranges, as those of `primitives.pruning` do below the
reductions; a term that is pruned there prunes the score. `Rejected` carries the rule's name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from fractions import Fraction
from functools import lru_cache

from primitives.block_sizes import SIZES
from primitives.changes import on_change
from primitives.formula import Formula
from primitives.properties import NON_NEGATIVE, Blind
from primitives.pruning import DEFAULT_RULES, Rule
from primitives.pruning import check as check_term
from primitives.ranges import Names, keeps_sign, range_of
from primitives.registry import get_unary
from primitives.rejection import Rejected
from primitives.score import (
    SIGNED_LOG,
    AnyFormula,
    Column,
    Join,
    Score,
    ScoreTree,
    Transform,
    nodes,
)
from primitives.score_canonical import as_product, ranking
from primitives.statistics import STATISTICS

MAX_FACTORS = 4
EXPONENTS = frozenset(Fraction(numerator, 4) for numerator in (1, 2, 4, 8))
# Columns are few and given, where terms are made by the thousand: finer exponents pay.
COLUMN_EXPONENTS = EXPONENTS | {Fraction(numerator, 8) for numerator in (1, 3, 6, 12)}

_ALL = (
    Rule("not-at-ends", "embedding and head have no such statistic or size", "embedding(fro(H))"),
    Rule("constant-factor", "a term that is decided by the shapes alone changes no ranking",
         "mul(sum(l1(W)), last(mean(softmax(G))))", "sum(l1(W))"),
    Rule("changes-sign", "a root, logarithm or inverse of a term that may change its sign",
         "mul(depth, sqrt(sum(W)))"),
    Rule("undone-operation", "the operation undoes the one before it",
         "mul(depth, sqrt(square(sum(l1(W)))))", "mul(depth, sum(l1(W)))"),
    Rule("idle-operation", "the operation, or the one before it, changes nothing here",
         "mul(depth, abs(sum(l1(W))))", "mul(depth, sum(l1(W)))"),
    Rule("monotone-whole", "the outermost operation keeps the ranking or reverses it",
         "inverse(sum(l1(W)))", "-sum(l1(W))"),
    Rule("cancelling-factors", "a factor meets its inverse",
         "mul(sum(l1(W)), depth, inverse(sum(l1(W))))", "depth"),
    Rule("repeated-factor", "one factor stands twice: its exponents add",
         "mul(depth, sum(l1(W)), sum(l1(W)))", "mul(depth, square(sum(l1(W))))"),
    Rule("cancelling-sum", "a summand meets its opposite", "sub(sum(l1(W)), sum(l1(W)))"),
    Rule("too-many-factors", f"more than {MAX_FACTORS} different terms and columns",
         "mul(a, b, c, d, e)"),
    Rule("exponent", "exponents that differ by other factors than 2, 4 and 8, or by more; those of"
         " columns also by 3/4 and 3/2",
         "mul(sum(l1(W)), sqrt(sqrt(sqrt(sqrt(last(l1(W)))))))"),
)  # fmt: skip
SCORE_RULES = {rule.name: rule for rule in _ALL}
ALL_RULES = DEFAULT_RULES | frozenset(SCORE_RULES)


def check(
    formula: AnyFormula, rules: Collection[str] = ALL_RULES, max_factors: int = MAX_FACTORS
) -> Rejected | None:
    """Why the formula need not be evaluated, or None; for single terms and for scores.

    `rules` names those of both levels, below and above the reductions.

    >>> from primitives.parser import parse
    >>> check(parse("mul(sqrt(sum(W)), depth)")).rule
    'changes-sign'
    """
    active = frozenset(rules)
    for term in formula.terms:
        found = _of_term(term, active, isinstance(formula, Formula))
        if found is not None:
            return found
    if isinstance(formula, Formula):
        return None
    broken = (name for name in _broken(formula, max_factors) if name in active)
    return next((_rejection(name) for name in broken), None)


@lru_cache(maxsize=65536)
def _of_term(term: Formula, rules: frozenset[str], is_alone: bool) -> Rejected | None:
    if "not-at-ends" in rules and term.positions.end is not None:
        has = [*term.statistics, *term.sizes]
        if not all((STATISTICS.get(name) or SIZES[name]).at_ends for name in has):
            return _rejection("not-at-ends")
    found = check_term(term, rules - frozenset(SCORE_RULES))
    is_constant = found is not None and found.rule == "constant"
    return _rejection("constant-factor") if is_constant and not is_alone else found


on_change(_of_term.cache_clear)


def _broken(score: Score, max_factors: int) -> Iterator[str]:
    """The rules that the score breaks, the most telling first."""
    tree = score.tree
    # A column's sign is in the data: it is given the benefit of the doubt here.
    positive = frozenset(score.columns)
    for node in nodes(tree):
        if isinstance(node, Transform):
            yield from _of_transform(node, positive)
    if isinstance(tree, Transform) and tree.operation != "abs":
        yield "monotone-whole"
    for node in nodes(tree):
        if isinstance(node, Join):
            yield from _of_join(node, positive)
    if len(score.terms) + len(score.columns) > max_factors:
        yield "too-many-factors"
    value = ranking(as_product(tree, positive), positive)
    if value.is_empty:
        yield "constant-factor"
    if not all(_is_exponent(power.base, power.exponent) for power in value.powers):
        yield "exponent"


def _is_exponent(base: ScoreTree, exponent: Fraction) -> bool:
    """Whether the language has that power of the base."""
    return abs(exponent) in (COLUMN_EXPONENTS if isinstance(base, Column) else EXPONENTS)


def _of_transform(node: Transform, positive: Names) -> Iterator[str]:
    if node.operation == SIGNED_LOG:
        return  # one to one and defined everywhere
    traits = get_unary(node.operation).traits
    known, inner = range_of(node.operand, positive), node.operand
    is_cut = traits.blind is Blind.NEGATIVE and known not in NON_NEGATIVE
    has_pole = traits.jumps_at_zero and not keeps_sign(known)
    if is_cut or has_pole:
        yield "changes-sign"
    if isinstance(inner, Transform):
        if any(pair.name == inner.operation for pair in traits.undoes):
            yield "undone-operation"
        if traits.blind is Blind.SIGN and inner.operation == "abs":
            yield "idle-operation"
    # |x| of what is never positive stays: without it there would be no root of it.
    if traits.fixes is not None and range_of(inner) in traits.fixes:
        yield "idle-operation"


def _of_join(node: Join, positive: Names) -> Iterator[str]:
    parts = [as_product(operand, positive) for operand in node.operands]
    if node.operation != "mul":
        signs = (1, -1) if node.operation == "sub" else (1,) * len(parts)
        seen = {(sign * part.sign, part.powers) for sign, part in zip(signs, parts, strict=True)}
        if any((-sign, powers) in seen for sign, powers in seen):
            yield "cancelling-sum"
        return
    met: dict[ScoreTree, Fraction] = {}
    for part in parts:
        for power in part.powers:
            if power.base not in met:
                met[power.base] = power.exponent
                continue
            met[power.base] += power.exponent
            if isinstance(power.base, Column) and met[power.base].numerator in (3, -3):
                continue  # x^(3/2) is written x sqrt(x)
            yield "repeated-factor" if met[power.base] else "cancelling-factors"


def _rejection(name: str) -> Rejected:
    return Rejected(name, SCORE_RULES[name].reason)
