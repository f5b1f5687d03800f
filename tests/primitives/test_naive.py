"""The rules of how shapes meet, on tensors small enough to work by hand."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from primitives import Matrix, Rejected, TensorError, cut, kept_columns, parse, score, whole
from primitives.naive import block_values
from primitives.pruning import check
from tests.random_formulas import random_tree

W = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
G = np.array([[1.0, 0.0, -1.0], [2.0, 1.0, 0.0]])
A = np.array([[10.0, 20.0]])


def value(text: str, **statistics: list[NDArray[np.float64]]) -> float:
    block = {name: [whole(x) for x in tensors] for name, tensors in statistics.items()}
    result = score(parse(f"sum({text})"), [block])
    assert isinstance(result, float)
    return result


def test_aligned_statistics_meet_element_by_element() -> None:
    assert value("mul(W, G)", W=[W], G=[G]) == pytest.approx((W * G).mean())
    assert value("add(W, G)", W=[W], G=[G]) == pytest.approx(4.0)


def test_aligned_tensors_meet_one_to_one_and_count_equally() -> None:
    big = np.ones((4, 4))
    expected = ((W * G).mean() + 3.0) / 2
    assert value("mul(W, G)", W=[W, big], G=[G, 3 * big]) == pytest.approx(expected)


def test_a_statistic_is_aligned_with_itself() -> None:
    assert value("mul(W, exp(W))", W=[W]) == pytest.approx((W * np.exp(W)).mean())


def test_a_scalar_broadcasts_tensor_by_tensor() -> None:
    expected = (W.sum() * W.mean() + 2 * W.sum() * 2 * W.mean()) / 2
    assert value("mul(l1(W), W)", W=[W, 2 * W]) == pytest.approx(expected)


@pytest.mark.parametrize("operation", ["mul", "matmul"])
def test_unaligned_statistics_meet_as_block_means(operation: str) -> None:
    assert value(f"{operation}(W, A)", W=[W, 2 * W], A=[A]) == pytest.approx(3.5 * 1.5 * 15)


def test_a_block_scalar_broadcasts_over_the_tensors_of_another_branch() -> None:
    expected = np.mean([np.square(3.5 * 15 * x).mean() for x in (W, W)])
    assert value("square(mul(mul(W, A), W))", W=[W, W], A=[A]) == pytest.approx(expected)


def test_matmul_is_the_product_when_inner_sizes_agree() -> None:
    x, y = np.random.default_rng(0).normal(size=(2, 3, 3))
    assert value("matmul(W, G)", W=[x], G=[y]) == pytest.approx((x @ y).mean())


def test_matmul_takes_the_transpose_when_widths_agree() -> None:
    assert value("matmul(W, G)", W=[W], G=[G]) == pytest.approx((W @ G.T).mean())


def test_matmul_is_the_product_of_means_when_nothing_agrees() -> None:
    tall = np.arange(20.0).reshape(5, 4)
    assert value("matmul(W, G)", W=[W], G=[tall]) == pytest.approx(W.mean() * tall.mean())


def test_matmul_with_a_scalar_is_a_plain_product() -> None:
    assert value("matmul(fro(W), G)", W=[W], G=[G]) == pytest.approx(
        math.sqrt((W * W).sum()) * G.mean()
    )


def test_matrices_of_different_shape_meet_as_their_means() -> None:
    gram = W @ G.T  # 2 x 2, against W of 2 x 3
    assert value("mul(matmul(W, G), W)", W=[W], G=[G]) == pytest.approx(gram.mean() * W.mean())


def test_shapes_agree_by_their_true_size_and_cut_sums_are_rescaled() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 6, 6))
    kept = kept_columns(6, 2)
    block = {"W": [cut(x, 12)], "G": [cut(y, 12)]}
    expected = 3 * (x[:, kept] @ y[kept][:, kept]).mean()
    assert score(parse("sum(matmul(W, G))"), [block]) == pytest.approx(expected)
    wide = {"W": [cut(x[:4], 8)], "G": [cut(y[:4], 8)]}
    expected = 3 * (x[:4, kept] @ y[:4, kept].T).mean()
    assert score(parse("sum(matmul(W, G))"), [wide]) == pytest.approx(expected)


def test_a_sketch_estimates_sums_of_the_whole_tensor() -> None:
    x = np.random.default_rng(0).normal(size=(8, 4000))
    for text in ("sum(l1(W))", "sum(fro(W))", "sum(mean(square(W)))"):
        exact = score(parse(text), [{"W": [whole(x)]}])
        sketched = score(parse(text), [{"W": [cut(x, 4096)]}])
        assert sketched == pytest.approx(exact, rel=0.05)


def test_reduction_and_sign() -> None:
    blocks = [{"W": [whole(W)]}, {"W": [whole(3 * W)]}]
    assert score(parse("sum(W)"), blocks) == pytest.approx(14)
    assert score(parse("-mean(W)"), blocks) == pytest.approx(-7)
    assert block_values(parse("-mean(W)").term.expression, blocks) == pytest.approx([3.5, 10.5])


def test_disconnect_makes_a_formula_one_sided() -> None:
    assert value("matmul(disconnect(G), W)", W=[W]) == 3.5


def test_nothing_left_is_rejected() -> None:
    found = score(parse("sum(add(disconnect(W), disconnect(G)))"), [{}])
    assert isinstance(found, Rejected)
    assert found.rule == "both-disconnected"


@pytest.mark.parametrize("text", ["square(" * 11 + "W" + ")" * 11, "mul(exp(W), W)"])
def test_overflow_is_rejected_even_where_a_later_operation_would_hide_it(text: str) -> None:
    block = {"W": [whole(np.full((2, 2), 1e300))]}
    found = score(parse(f"sum(sigmoid({text}))"), [block])
    assert isinstance(found, Rejected)
    assert found.rule == "non-finite"


def test_a_missing_statistic_is_named() -> None:
    with pytest.raises(TensorError, match="no tensor of statistic 'A'; it has: W"):
        score(parse("sum(A)"), [{"W": [whole(W)]}])


def test_unequal_numbers_of_aligned_tensors_are_refused() -> None:
    with pytest.raises(TensorError, match="2 tensors meet 1"):
        score(parse("sum(add(W, G))"), [{"W": [whole(W)] * 2, "G": [whole(G)]}])


def test_no_blocks_are_refused() -> None:
    with pytest.raises(TensorError, match="at least one"):
        score(parse("sum(W)"), [])


@pytest.mark.slow
def test_torch_tensors_score_as_numpy_ones_do(make_architecture: Any) -> None:
    blocks = make_architecture(3, limit=12, scale=1.0)
    there = [
        {n: [Matrix(torch.tensor(m.values), m.true_columns) for m in ms] for n, ms in b.items()}
        for b in blocks
    ]
    rng = random.Random(5)
    compared = 0
    for _ in range(200):
        formula = random_tree(rng, 5)
        if check(formula) is not None:
            continue  # the mean of a z-score is rounding noise, and a logarithm shows it
        ours, theirs = score(formula, blocks), score(formula, there)
        if isinstance(ours, Rejected) or abs(ours) > 1e6:
            continue  # a tiny denominator amplifies the last bit
        assert theirs == pytest.approx(ours, rel=1e-5, abs=1e-9), str(formula)
        compared += 1
    assert compared > 50


def test_scoring_changes_no_tensor(make_architecture: Any) -> None:
    blocks = make_architecture(1)
    before = [m.values.copy() for b in blocks for ms in b.values() for m in ms]
    for seed in range(50):
        score(random_tree(random.Random(seed), 6), blocks)
    after = [m.values for b in blocks for ms in b.values() for m in ms]
    assert all(np.array_equal(x, y) for x, y in zip(before, after, strict=True))


def test_softmax_is_of_columns() -> None:
    powers = np.exp(W)
    found = score(parse("sum(square(softmax(W)))"), [{"W": [whole(W)]}])
    assert found == pytest.approx(np.mean((powers / powers.sum(axis=0, keepdims=True)) ** 2))


def test_a_product_has_the_true_width_of_what_it_was_made_of() -> None:
    """l1 rescales to the true width, so it shows which one a product has."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 6, 6))
    kept = kept_columns(6, 2)
    square = {"W": [cut(x, 12)], "G": [cut(y, 12)]}
    # a·b has b's columns: two of six are kept.
    inner = 3 * x[:, kept] @ y[kept][:, kept]
    expected = 3 * np.abs(inner).sum()
    assert score(parse("sum(l1(matmul(W, G)))"), [square]) == pytest.approx(expected)
    # a·bᵀ has a column per row of b, and b keeps all of its rows.
    wide = {"W": [cut(x[:4], 8)], "G": [cut(y[:4], 8)]}
    outer = 3 * x[:4, kept] @ y[:4, kept].T
    assert score(parse("sum(l1(matmul(W, G)))"), [wide]) == pytest.approx(np.abs(outer).sum())


def test_a_scalar_with_a_matrix_is_as_wide_as_the_matrix_on_either_side() -> None:
    x = np.random.default_rng(0).normal(size=(4, 6))
    kept = kept_columns(6, 2)
    block = {"W": [cut(x, 8)]}
    expected = 3 * np.abs(x[:, kept].mean() * x[:, kept]).sum()
    for text in ("mul(mean(W), W)", "mul(W, mean(W))"):
        assert score(parse(f"sum(l1({text}))"), [block]) == pytest.approx(expected)


def test_a_product_of_two_widths_has_the_second_one() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(4, 6)), rng.normal(size=(6, 9))
    block = {"W": [cut(x, 12)], "G": [cut(y, 18)]}
    of_x, of_y = kept_columns(6, 3), kept_columns(9, 3)
    product = 2 * x[:, of_x] @ y[of_x][:, of_y]
    expected = 3 * np.abs(product).sum()
    assert score(parse("sum(l1(matmul(W, G)))"), [block]) == pytest.approx(expected)
