"""DEAP's crossover draws types in a fixed order, whatever process it runs in."""

from __future__ import annotations

import random
from typing import Any

import pytest

from lpzero.discover.language import Language
from lpzero.discover.settings import preset
from lpzero.discover.variation import as_global_rng
from primitives.deap_set import from_tree, to_tree
from primitives.expressions import children, depth
from primitives.formula import Formula
from tests.lpzero.discover.toolboxes import toolbox_of
from tests.random_formulas import random_tree

N = 300


def by_type(tree: Any) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for index, node in enumerate(tree[1:], 1):
        found.setdefault(node.ret.__name__, []).append(index)
    return found


def naive_crossover(language: Language, first: Formula, second: Formula) -> Formula:
    """Two trees for every attempt; the donor's subtree is put in by DEAP."""
    for _ in range(30):
        child, donor = (to_tree(f.term, language.primitive_set) for f in (first, second))
        nodes, others = by_type(child), by_type(donor)
        kind = random.choice(sorted(nodes.keys() & others.keys()) or [""])
        made = first
        if kind:
            replaced = child.searchSubtree(random.choice(nodes[kind]))
            replacement = donor.searchSubtree(random.choice(others[kind]))
            child[replaced] = donor[replacement]
            made = Formula.of_base(from_tree(child))
        if made != first and naive_is_inside(language, made):
            return made
    return first


def naive_is_inside(language: Language, formula: Formula) -> bool:
    return Language(language.settings).why_outside(formula) is None


def naive_depth(expression: Any) -> int:
    return 1 + max(map(naive_depth, children(expression)), default=0)


@pytest.mark.slow
def test_children_and_random_state_are_those_of_whole_trees() -> None:
    language = Language(preset("paper", chains="up-to", unaries=3, depth=2))
    toolbox = toolbox_of(language)
    draws = random.Random(5)
    parents = [language.draw(draws) for _ in range(12)]
    fast, slow = random.Random(7), random.Random(7)
    changed = 0
    for _ in range(N):
        first, second = draws.choice(parents), draws.choice(parents)
        assert isinstance(first, Formula)
        assert isinstance(second, Formula)
        with as_global_rng(fast):
            made = toolbox.mate(first, second)
        with as_global_rng(slow):
            expected = naive_crossover(language, first, second)
        assert made == expected
        assert fast.getstate() == slow.getstate()
        changed += made != first
    assert changed > N // 2


@pytest.mark.slow
def test_the_reason_outside_is_the_same_when_asked_again() -> None:
    language = Language(preset("paper"))
    wide = Language(preset("paper", chains="up-to", unaries=4, depth=2, same_statistic=True))
    draws = random.Random(1)
    outside = 0
    for formula in [wide.draw(draws) for _ in range(N)]:
        expected = Language(preset("paper")).why_outside(formula)
        assert language.why_outside(formula) == language.why_outside(formula) == expected
        outside += expected is not None
    assert outside > 0


def test_depth_is_that_of_a_plain_recursion() -> None:
    draws = random.Random(2)
    depths = set()
    for expression in [random_tree(draws, 7).term.expression for _ in range(N)]:
        assert depth(expression) == naive_depth(expression)
        depths.add(depth(expression))
    assert len(depths) > 5
