from __future__ import annotations

import random
from functools import cache
from itertools import product

import pytest

from primitives import BINARIES, UNARIES, Apply, Combine, Expression, Formula, FormulaError
from primitives.canonical import canonical
from primitives.enumeration import Family, chains, families, statistic_pairs, surviving_branches
from primitives.expressions import drop_dead
from primitives.properties import Kind
from primitives.pruning import DEFAULT_RULES, check
from primitives.space_size import SpaceSize, measure, removed_alone
from tests.formula_keys import key_up_to_sign


@pytest.mark.slow
@pytest.mark.parametrize("same_statistic", [False, True])
def test_counts_and_families_equal_the_space_walked_through(same_statistic: bool) -> None:
    """Chains of one, formula by formula: nothing counted, kept or merged that should not be."""
    keys: set[str] = set()
    rejected: dict[str, int] = {}
    kept = 0
    for left, right in statistic_pairs(same_statistic):
        for f, g, operation in product(UNARIES, UNARIES, BINARIES):
            formula = Formula.of(operation, (left, [f]), (right, [g]))
            found = check(formula)
            if found is None:
                kept += 1
                keys.add(key_up_to_sign(formula))
            else:
                rejected[found.rule] = rejected.get(found.rule, 0) + 1
    size = measure(1, same_statistic)
    listed = [f for family in families(1, same_statistic) for f in family.formulas()]
    assert (size.kept, size.distinct) == (kept, len(keys))
    assert size.rejected == rejected
    assert sorted(map(key_up_to_sign, listed)) == sorted(keys)
    assert all(check(formula) is None for formula in listed)


@pytest.mark.slow
def test_the_papers_counts_before_pruning() -> None:
    assert measure(1).before == 26_460
    assert size_of_chains_of_two().before == 11_668_860


@pytest.mark.slow
def test_chains_of_two_are_counted() -> None:
    size = size_of_chains_of_two()
    assert size.before == size.kept + sum(size.rejected.values())
    assert measure(1).distinct < size.distinct < size.kept < size.before


@pytest.mark.slow
def test_counts_of_chains_of_two_hold_on_a_sample() -> None:
    rng = random.Random(0)
    n, kept = 4000, 0
    for _ in range(n):
        kept += check(_draw(rng)) is None
    share = size_of_chains_of_two().kept / size_of_chains_of_two().before
    assert abs(kept / n - share) < 4 * (share * (1 - share) / n) ** 0.5


@pytest.mark.slow
def test_a_kept_formula_with_chains_of_two_lies_in_exactly_one_family() -> None:
    members = [
        (f.operation, {b.expression for b in f.left}, {b.expression for b in f.right})
        for f in families(2)
    ]
    rng = random.Random(1)
    found = 0
    while found < 400:
        formula = _draw(rng)
        if check(formula) is None:
            options = _spellings(canonical(formula).term.expression)
            holding = [i for i, family in enumerate(members) if any(map(_in(family), options))]
            assert len(holding) == 1, str(formula)
            found += 1


def _draw(rng: random.Random) -> Formula:
    left, right = rng.choice(statistic_pairs())
    chosen = [rng.choices(list(UNARIES), k=2) for _ in range(2)]
    return Formula.of(rng.choice(list(BINARIES)), (left, chosen[0]), (right, chosen[1]))


Spelling = tuple[str | None, Expression, Expression | None]


def _spellings(expression: Expression) -> list[Spelling]:
    """The ways a family may write a canonical formula: order, and the place of a free mean."""
    if not isinstance(expression, Combine):
        return [(None, expression, None)]
    operation, left, right = expression.operation, expression.left, expression.right
    options: list[Spelling] = [(operation, left, right), (operation, right, left)]
    if operation == "matmul":
        return options[:1]
    if operation == "mul" and isinstance(right, Apply) and right.operation == "mean":
        inner, mean = right.operand, Apply("mean", left)
        options += [(operation, mean, inner), (operation, inner, mean)]
    return options


def _in(family: tuple[str | None, set[Expression], set[Expression]]):  # type: ignore[no-untyped-def]
    def holds(option: Spelling) -> bool:
        operation, left, right = option
        return (
            operation == family[0] and left in family[1] and (right is None or right in family[2])
        )

    return holds


def test_families_know_their_size() -> None:
    found = list(families(1, same_statistic=True))
    assert len(found) > 10
    for family in found:
        assert len(family) == sum(1 for _ in family.formulas("mean"))


def test_an_unordered_difference_leaves_out_equal_sides() -> None:
    branches = surviving_branches("W", 1).terms[:4]
    assert len(Family("sub", branches, branches, True)) == 6
    assert len(Family("add", branches, branches, True)) == 10


def test_branches_carry_their_kind() -> None:
    kinds = {b.chain: b.kind for b in surviving_branches("W", 1).terms}
    assert kinds[("fro",)] is Kind.SCALAR
    assert kinds[("square",)] is Kind.MATRIX
    assert kinds[()] is Kind.MATRIX


def test_a_non_negative_statistic_has_fewer_branches() -> None:
    assert len(surviving_branches("S", 2).terms) < len(surviving_branches("W", 2).terms)


def test_without_rules_nothing_is_rejected_but_duplicates_still_merge() -> None:
    free = measure(1, rules=frozenset())
    assert free.kept == free.before
    assert measure(1).distinct < free.distinct < free.before


@cache
def size_of_chains_of_two() -> SpaceSize:
    return measure(2)


@pytest.mark.slow
@pytest.mark.parametrize("rule", sorted(DEFAULT_RULES - {"cancels"}))
def test_every_rule_removes_something_and_alone_at_least_as_much(rule: str) -> None:
    assert size_of_chains_of_two().rejected[rule] > 0
    assert measure(1).rejected.get(rule, 0) <= removed_alone(1, rule)


def test_only_branches_of_one_statistic_cancel() -> None:
    assert removed_alone(1, "cancels") == 0
    assert removed_alone(1, "cancels", same_statistic=True) > 0


@pytest.mark.parametrize("unaries", [0, 4])
def test_a_length_that_cannot_be_enumerated_is_refused(unaries: int) -> None:
    with pytest.raises(FormulaError, match="choose 1 to 3"):
        list(chains(unaries))


def test_a_family_drops_nothing_that_is_alive() -> None:
    branches = [branch for family in families(1) for branch in (*family.left, *family.right)]
    assert len(branches) > 100
    assert all(drop_dead(branch.expression) == branch.expression for branch in branches)
