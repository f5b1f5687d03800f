"""The size of the space before and after pruning, and how much each rule removes.

Chains fall into few classes (disconnected, rejected by a rule, kept with certain facts), and
whether a rule rejects a formula depends only on the classes of its branches. So one formula per
pair of classes is checked, and weighted by the number of formulas that it represents.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from primitives.canonical import canonical_term
from primitives.enumeration import chains, families, statistic_pairs
from primitives.expressions import Combine, Expression, branch, drop_dead
from primitives.facts import facts
from primitives.formula import Term
from primitives.properties import on_change
from primitives.pruning import DEFAULT_RULES, check_expression, check_term, has_zero_mean
from primitives.registry import BINARIES, UNARIES
from primitives.statistics import STATISTICS


@dataclass(frozen=True, slots=True)
class SpaceSize:
    """Formulas of one reduction: all, rejected by each rule, kept, and distinct."""

    unaries: int
    before: int
    rejected: dict[str, int]
    kept: int
    distinct: int


def measure(
    unaries: int, same_statistic: bool = False, rules: frozenset[str] = DEFAULT_RULES
) -> SpaceSize:
    """The size of the space with chains of `unaries` operations.

    Duplicates are merged up to sign, since the sign of a formula is fitted afterwards.
    """
    rejected = _rejected(unaries, same_statistic, rules)
    before = len(statistic_pairs(same_statistic)) * len(UNARIES) ** (2 * unaries) * len(BINARIES)
    distinct = sum(map(len, families(unaries, same_statistic, rules)))
    ordered = dict(sorted(rejected.items(), key=lambda item: -item[1]))
    return SpaceSize(unaries, before, ordered, before - sum(rejected.values()), distinct)


def removed_alone(unaries: int, rule: str, same_statistic: bool = False) -> int:
    """How many formulas the rule would reject if it were the only one."""
    return _rejected(unaries, same_statistic, frozenset({rule}))[rule]


def _rejected(unaries: int, same_statistic: bool, rules: frozenset[str]) -> Counter[str]:
    """Formulas per rule, each counted under the first rule that rejects it."""
    rejected: Counter[str] = Counter()
    for left, right in statistic_pairs(same_statistic):
        for a, n in _classes(left, unaries, rules):
            for b, m in _classes(right, unaries, rules):
                for operation in BINARIES:
                    # Whether two chains cancel does not follow from their classes: counted below.
                    answer = check_term(Term("sum", Combine(operation, a, b)), rules - {"cancels"})
                    if answer is not None:
                        rejected[answer.rule] += n * m
        if left == right and "cancels" in rules:
            rejected["cancels"] += _cancelling(left, unaries, rules)
    return rejected


def _classes(
    statistic: str, unaries: int, rules: frozenset[str]
) -> Iterator[tuple[Expression, int]]:
    """One example per class of chains, with the number of chains it represents."""
    # Chains of statistics with the same range have one class, so only the first is checked.
    alike = next(s.name for s in STATISTICS.values() if s.range == STATISTICS[statistic].range)
    for chain, count in _class_chains(alike, unaries, rules):
        yield branch(statistic, *chain), count


@lru_cache(maxsize=128)
def _class_chains(
    statistic: str, unaries: int, rules: frozenset[str]
) -> tuple[tuple[tuple[str, ...], int], ...]:
    examples: dict[object, tuple[str, ...]] = {}
    counts: Counter[object] = Counter()
    for chain in chains(unaries):
        name = _class_of(branch(statistic, *chain), rules)
        examples.setdefault(name, chain)
        counts[name] += 1
    return tuple((examples[name], count) for name, count in counts.items())


on_change(_class_chains.cache_clear)


def _class_of(written: Expression, rules: frozenset[str]) -> object:
    expression = drop_dead(written)
    if expression is None:
        return "disconnected"
    rejected = check_expression(expression, rules)
    if rejected is not None:
        return rejected.rule
    on_its_own = check_term(Term("sum", expression), rules)
    return facts(expression).kind, has_zero_mean(expression), on_its_own


def _cancelling(statistic: str, unaries: int, rules: frozenset[str]) -> int:
    """The number of sums and differences of two kept chains of one statistic that are zero."""
    alike: Counter[Expression] = Counter()
    for chain in chains(unaries):
        expression = drop_dead(branch(statistic, *chain))
        if expression is None or check_expression(expression, rules) is not None:
            continue
        if "zero-term" not in rules or not has_zero_mean(expression):
            alike[canonical_term(Term("sum", expression))[1].expression] += 1
    return sum(count * count for count in alike.values())
