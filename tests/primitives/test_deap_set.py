from __future__ import annotations

import random
from typing import Any

import pytest
from deap import gp

from primitives import FormulaError, parse
from primitives.deap_set import (
    MatrixNode,
    ScalarNode,
    build_chain_set,
    build_set,
    from_tree,
    grow,
    to_tree,
)
from primitives.properties import Monotone, Symmetry
from primitives.registry import forget, unary
from tests.random_formulas import random_tree


@pytest.fixture(scope="module")
def everything() -> Any:
    return build_set()


def test_every_formula_survives_the_way_through_deap(everything: Any) -> None:
    rng = random.Random(0)
    for _ in range(400):
        term = random_tree(rng, 7).term
        assert from_tree(to_tree(term, everything)) == term


def test_every_tree_survives_the_way_through_a_formula(everything: Any) -> None:
    rng = random.Random(1)
    for _ in range(400):
        tree = gp.PrimitiveTree(grow(everything, 1, 6, rng=rng))
        assert to_tree(from_tree(tree), everything) == tree


def test_grown_trees_keep_their_depth_and_type(everything: Any) -> None:
    rng = random.Random(2)
    for _ in range(500):
        assert 1 <= gp.PrimitiveTree(grow(everything, 1, 4, rng=rng)).height <= 6
        assert grow(everything, 0, 2, ScalarNode, rng)[0].ret is ScalarNode
        assert grow(everything, 0, 0, MatrixNode, rng)[0].arity == 0


def test_growing_is_decided_by_the_generator(everything: Any) -> None:
    one, other = (grow(everything, 2, 5, rng=random.Random(7)) for _ in range(2))
    assert one == other
    random.seed(7)
    assert grow(everything, 2, 5) == one


def test_variation_keeps_trees_convertible(everything: Any) -> None:
    random.seed(3)
    pool = [gp.PrimitiveTree(grow(everything, 2, 4)) for _ in range(20)]
    for _ in range(300):
        a, b = (gp.PrimitiveTree(tree) for tree in random.sample(pool, 2))
        a, b = gp.cxOnePoint(a, b)
        (a,) = gp.mutUniform(a, lambda pset, type_: grow(pset, 0, 2, type_), everything)
        for tree in (a, b):
            assert to_tree(from_tree(tree), everything) == tree
            if tree.height < 8:
                pool[random.randrange(len(pool))] = tree


def test_trees_cannot_be_called(everything: Any) -> None:
    tree = to_tree(parse("sum(square(W))").term, everything)
    with pytest.raises(FormulaError, match="from_tree"):
        gp.compile(tree, everything)


@pytest.mark.parametrize("damage", ["no root", "cut", "too long"])
def test_a_damaged_tree_is_refused(everything: Any, damage: str) -> None:
    tree = list(to_tree(parse("sum(add(W, G))").term, everything))
    broken = {"no root": tree[1:], "cut": tree[:-1], "too long": [*tree, tree[-1]]}[damage]
    with pytest.raises(FormulaError, match="tree"):
        from_tree(broken)


def test_an_operation_declared_later_is_read_too() -> None:
    from_tree(to_tree(parse("sum(W)").term, build_set()))  # what the names mean is remembered

    @unary(latex="h({x})", monotone=Monotone.INCREASING, symmetry=Symmetry.ODD)
    def half(x: Any, xp: Any) -> Any:
        return x / 2

    try:
        term = parse("sum(half(fro(half(W))))").term
        assert from_tree(to_tree(term, build_set())) == term
    finally:
        forget("half")


def test_sizes_are_scalars_and_ends_are_reductions() -> None:
    made = build_set("WG", ("sum", "head"), ("params",))
    for text in ("head(fro(W))", "sum(mul(params, abs(G)))", "sum(sqrt(params))"):
        term = parse(text).term
        assert from_tree(to_tree(term, made)) == term
    with pytest.raises(FormulaError, match="no 'A'"):
        to_tree(parse("sum(A)").term, made)


def test_deap_inserts_unaries_that_keep_the_type() -> None:
    random.seed(4)
    everything = build_set(sizes=("params",))
    for text in ("sum(W)", "sum(fro(W))", "sum(params)", "sum(mul(fro(W), G))"):
        term = parse(text).term
        lengths = set()
        for _ in range(50):
            (tree,) = gp.mutInsert(to_tree(term, everything), build_chain_set())
            assert to_tree(from_tree(tree), everything) == tree
            lengths.add(from_tree(tree).complexity - term.complexity)
        assert lengths == {0, 1}
