"""Scores: equal to the reference, and a function of the formula and the sketches alone."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import lru_cache
from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import spaces
from lpzero.arrays import ByteCache
from lpzero.scores.branch_table import branch_table
from lpzero.scores.chains import surviving
from lpzero.scores.values import Values
from lpzero.sketches.builder import build_sketch
from lpzero.sketches.sketch import Sketch, SketchOptions
from primitives import naive
from primitives.errors import Rejected
from primitives.formula import Formula
from primitives.parser import parse
from primitives.pruning import check
from primitives.reductions import PAPER_REDUCTIONS
from primitives.registry import BINARIES
from primitives.statistics import STATISTICS
from tests.lpzero import random_sketches
from tests.random_formulas import random_chain, random_live_formula

PAIRS = list(combinations_with_replacement(STATISTICS, 2))
RELATIVE = 1e-5


@lru_cache(maxsize=4)
def real(space_name: str) -> list[Sketch]:
    """Sketches of networks that were really run."""
    space = spaces.get(space_name)
    options = SketchOptions(limit=300)
    return [build_sketch(space, space.sample(random.Random(seed)), options) for seed in range(3)]


@lru_cache(maxsize=4)
def evaluator(space_name: str) -> Values:
    return Values(branch_table(real(space_name)))


def assert_like_reference(
    found: np.ndarray | Rejected, formula: Formula, sketches: list[Sketch]
) -> None:
    expected = [naive.score(formula, random_sketches.blocks_of(one)) for one in sketches]
    rejected = [value for value in expected if isinstance(value, Rejected)]
    if rejected or isinstance(found, Rejected):
        assert isinstance(found, Rejected), str(formula)
        assert rejected, str(formula)
        assert found.rule == rejected[0].rule
        return
    # Sums that cancel to nothing are noise in both; 1e-13 lies far below any other score here.
    np.testing.assert_allclose(found, expected, rtol=RELATIVE, atol=1e-13, err_msg=str(formula))


def is_noise(formula: Formula, sketches: list[Sketch]) -> bool:
    """Whether rounding decides the reference's scores, as in the logarithm of a mean z-score."""
    for one in sketches:
        blocks = random_sketches.blocks_of(one)
        rng = np.random.default_rng(0)
        moved = [
            {
                name: [replace(m, values=m.values * (1 + 1e-13 * rng.random(m.values.shape)))
                       for m in matrices]
                for name, matrices in block.items()
            }
            for block in blocks
        ]  # fmt: skip
        first, again = naive.score(formula, blocks), naive.score(formula, moved)
        if isinstance(first, Rejected) or isinstance(again, Rejected):
            continue
        if not np.isclose(again, first, rtol=RELATIVE, atol=1e-13):
            return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize("operation", list(BINARIES))
@pytest.mark.parametrize("space_name", ["nano-flexibert", "nano-gpt2"])
def test_every_pair_and_operation_equals_the_reference(space_name: str, operation: str) -> None:
    rng = random.Random(operation)
    formulas = []
    for left, right in PAIRS:
        for length in (1, 2, 3):
            pair = [(left, random_chain(rng, length)), (right, random_chain(rng, length))]
            rng.shuffle(pair)
            formulas.append(Formula.of(operation, *pair, rng.choice(PAPER_REDUCTIONS)))
    for formula, found in zip(formulas, evaluator(space_name).answers(formulas), strict=True):
        assert_like_reference(found, formula, real(space_name))


@pytest.mark.slow
@settings(max_examples=30)
@given(st.integers(0, 10**9))
def test_nested_trees_equal_the_reference(seed: int) -> None:
    rng = random.Random(seed)
    formula = random_live_formula(rng, depth=5)
    space_name = rng.choice(["nano-flexibert", "nano-gpt2"])
    assume(check(formula) is None)
    assume(not is_noise(formula, real(space_name)))
    assert_like_reference(evaluator(space_name).score(formula), formula, real(space_name))


def test_drawn_shapes_equal_the_reference() -> None:
    sketches = [random_sketches.sketch(seed, 1 + seed) for seed in range(3)]
    engine = Values(branch_table(sketches, surviving(1)))
    rng = random.Random(5)
    drawn = [random_live_formula(rng, depth=4) for _ in range(80)]
    kept = [formula for formula in drawn if check(formula) is None]
    compared = 0
    for formula in kept:
        found = engine.score(formula)
        expected = [naive.score(formula, random_sketches.blocks_of(s)) for s in sketches]
        if isinstance(found, Rejected):
            assert any(isinstance(value, Rejected) for value in expected), str(formula)
        else:
            np.testing.assert_allclose(
                found, expected, rtol=RELATIVE, atol=1e-13, err_msg=str(formula)
            )
            compared += 1
    assert compared > 20


@pytest.mark.slow
def test_a_score_depends_on_nothing_but_formula_and_sketches() -> None:
    sketches = [random_sketches.sketch(seed) for seed in range(4)]
    rng = random.Random(11)
    formulas = [random_live_formula(rng, depth=5) for _ in range(60)]
    whole = Values(branch_table(sketches))
    together = whole.answers(formulas)
    order = rng.sample(range(60), 60)
    shy = Values(branch_table(sketches), memory=2000)  # remembers next to nothing
    threads = Values(branch_table(sketches), jobs=2)
    some = Values(branch_table(sketches, rows=[3, 1]))
    assert sum(not isinstance(scores, Rejected) for scores in together) > 20
    for index in order:
        alone = shy.score(formulas[index])
        again = [shy.score(formulas[index]), threads.score(formulas[index])]
        part = some.score(formulas[index])
        expected = together[index]
        if isinstance(expected, Rejected):
            assert alone == again[0] == again[1] == expected
            continue
        for other in (alone, *again):
            assert not isinstance(other, Rejected)
            np.testing.assert_array_equal(other, expected)
        assert not isinstance(part, Rejected)
        np.testing.assert_array_equal(part, expected[[3, 1]])
    for scores, answer in zip(whole.scores(formulas), together, strict=True):
        expected = np.full(4, np.nan) if isinstance(answer, Rejected) else answer
        np.testing.assert_array_equal(scores, expected)


def test_a_product_is_the_product_of_its_powers_whatever_was_scored_before() -> None:
    sketches = [random_sketches.sketch(seed) for seed in range(3)]
    texts = ("mul(sum(l1(W)), sqrt(sum(fro(H))), size)", "sum(l1(W))", "-sqrt(sum(fro(H)))")
    values = Values(branch_table(sketches, surviving(1)), {"size": np.array([3.0, 5.0, 7.0])})
    product, first, second = (values.score(parse(text)) for text in texts)
    np.testing.assert_array_equal(product, first * -second * values.columns["size"])
    other = values.beside({"size": np.array([2.0, 5.0, 7.0]), "extra": np.arange(3.0)})
    np.testing.assert_array_equal(other.score(parse(texts[0])) / product, [2 / 3, 1, 1])
    np.testing.assert_array_equal(values.score(parse(texts[0])), product)
    assert "extra" not in values.columns
    product[:] = 0.0  # the caller's own
    np.testing.assert_array_equal(values.score(parse(texts[1])), first)


def test_a_product_that_overflows_is_rejected_though_its_factors_are_not() -> None:
    large = Values(columns={"a": np.array([1.0, 1e200]), "b": np.array([1.0, 1e200])})
    assert not isinstance(large.score(parse("a")), Rejected)
    answer = large.score(parse("mul(a, b)"))
    assert isinstance(answer, Rejected)
    assert answer.rule == "non-finite"
    assert isinstance(large.score(parse("square(a)")), Rejected)
    assert np.isnan(large.scores([parse("mul(a, b)")])).all()


def test_an_overflow_on_one_architecture_rejects_the_formula() -> None:
    small, big = random_sketches.sketch(0), random_sketches.sketch(1)
    big = Sketch(big.header, big.numbers * np.float32(1e30))
    engine = Values(branch_table([small, big]))
    for text in (
        "sum(sigmoid(square(square(square(square(A))))))",  # the sigmoid would hide it
        "sum(mul(square(square(W)), square(square(square(G)))))",
        "mean(add(square(square(square(square(J)))), A))",
    ):
        found = engine.score(parse(text))
        assert isinstance(found, Rejected), text
        assert found.rule == "non-finite"
    assert not isinstance(
        Values(branch_table([small])).score(parse("sum(square(square(A)))")), Rejected
    )


def test_a_formula_without_branches_is_rejected() -> None:
    found = Values(branch_table([random_sketches.sketch(0)])).score(
        parse("sum(add(disconnect(W), disconnect(G)))")
    )
    assert isinstance(found, Rejected)
    assert found.rule == "both-disconnected"


def test_sign_and_reduction() -> None:
    sketches = [random_sketches.sketch(seed, n_blocks=1 + seed) for seed in range(3)]
    engine = Values(branch_table(sketches))
    total, average, negative = (
        engine.score(parse(text))
        for text in ("sum(square(W))", "mean(square(W))", "-sum(square(W))")
    )
    np.testing.assert_array_equal(average, total / np.array([1, 2, 3]))
    np.testing.assert_array_equal(negative, -total)


def test_the_cache_drops_the_least_recently_used_value() -> None:
    cache: ByteCache[str] = ByteCache(10)
    cache.put("a", "A", 4)
    cache.put("b", "B", 4)
    assert cache.get("a") == "A"
    cache.put("c", "C", 4)
    assert [cache.get(key) for key in "abc"] == ["A", None, "C"]
    cache.put("huge", "H", 11)
    assert "huge" not in cache
    assert cache.bytes == 8


@pytest.mark.parametrize(
    "text",
    [
        "l1(matmul(W, G))",
        "fro(matmul(W, exp(W)))",
        "l1(mul(mean(W), G))",
        "l1(mul(G, mean(W)))",
        "square(softmax(matmul(W, G)))",
        "square(softmax(mul(W, G)))",
        "l1(matmul(matmul(W, G), W))",
    ],
)
def test_what_reads_the_true_width_of_a_product_equals_the_reference(text: str) -> None:
    """Sums over a cut axis are rescaled by the true width, which a product has to state."""
    sketches = [random_sketches.sketch(seed, 1 + seed) for seed in range(3)]
    engine = Values(branch_table(sketches, surviving(1)))
    formula = parse(f"sum({text})")
    expected = [naive.score(formula, random_sketches.blocks_of(s)) for s in sketches]
    np.testing.assert_allclose(engine.score(formula), expected, rtol=1e-9)
