"""What every primitive promises: finite, pure, the same in NumPy, torch and sympy."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from primitives import UNARIES
from primitives.symbolic import as_numpy, symbol, unary_form

Doubles = NDArray[np.float64]
CALLABLE = [name for name in UNARIES if name != "disconnect"]
SETTINGS = settings(deadline=None, derandomize=True, database=None, max_examples=20)
any_float32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
gentle = st.floats(-30, 30, width=32)


def matrices(elements: st.SearchStrategy[float]) -> st.SearchStrategy[Doubles]:
    shapes = st.tuples(st.integers(1, 4), st.integers(1, 4))
    return shapes.flatmap(lambda shape: arrays(np.float64, shape, elements=elements))


def test_the_language_has_the_papers_21_unaries() -> None:
    expected = "log abslog abs square exp zscore relu inverse fro norm_sum l1 softmax sigmoid"
    expected += " log_softmax sqrt neg minmax mean std identity disconnect"
    assert list(UNARIES) == expected.split()


@pytest.mark.slow
@SETTINGS
@given(matrices(any_float32))
def test_every_chain_of_two_is_finite_over_the_float32_range(x: Doubles) -> None:
    for first, second in product(CALLABLE, repeat=2):
        between = np.asarray(UNARIES[first](x)).reshape(
            x.shape if UNARIES[first](x).shape else (1, 1)
        )
        assert np.isfinite(between).all(), first
        assert np.isfinite(UNARIES[second](between)).all(), (first, second)


@SETTINGS
@given(matrices(any_float32))
def test_no_primitive_changes_its_operand(x: Doubles) -> None:
    for name in CALLABLE:
        before, tensor = x.copy(), torch.tensor(x)
        UNARIES[name](x)
        UNARIES[name](tensor)
        assert np.array_equal(x, before), name
        assert np.array_equal(tensor.numpy(), before), name


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLABLE)
def test_torch_agrees_with_numpy_over_the_float32_range(name: str) -> None:
    @SETTINGS
    @given(matrices(any_float32))
    def agree(x: Doubles) -> None:
        ours = np.asarray(UNARIES[name](x, 2.5))
        theirs = UNARIES[name](torch.tensor(x), 2.5).numpy()
        # A spread within rounding of its guard may fall on either side of it.
        assume(name not in ("zscore", "minmax", "std") or not _spread_is_noise(x))
        scale = np.abs(x).max() if name in ("mean", "norm_sum", "std") else 0.0
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-12 * scale + 1e-9)

    agree()


def _spread_is_noise(x: Doubles) -> bool:
    return bool(np.ptp(x) <= 1e-10 * np.abs(x).max())


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLABLE)
def test_the_lambdified_sympy_form_agrees_with_numpy(name: str) -> None:
    form = as_numpy(unary_form(name, symbol("W")), "W")

    @SETTINGS
    @given(matrices(gentle))
    def agree(x: Doubles) -> None:
        assume(name not in ("zscore", "minmax", "std") or not _spread_is_noise(x))
        with np.errstate(all="ignore"):
            theirs = form(x)
        np.testing.assert_allclose(UNARIES[name](x), theirs, rtol=1e-5, atol=1e-9)

    agree()


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("log", -3.0, 0.0),
        ("log", 0.0, 0.0),
        ("log", math.e, 1.0),
        ("abslog", 0.0, 0.0),
        ("abslog", -math.e, 1.0),
        ("abslog", 1 / math.e, 1.0),
        ("exp", 1e9, math.exp(50)),
        ("exp", -1e9, math.exp(-50)),
        ("inverse", 0.0, 1e9),
        ("inverse", -0.0, 1e9),
        ("inverse", -1e-12, -1e9),
        ("inverse", -4.0, -0.25),
        ("sqrt", -4.0, 0.0),
        ("sqrt", 9.0, 3.0),
        ("relu", -2.0, 0.0),
        ("softmax", 7.0, 1.0),
        ("log_softmax", 7.0, 0.0),
        ("zscore", 7.0, 0.0),
        ("minmax", 7.0, 0.0),
        ("std", 7.0, 0.0),
        ("fro", -7.0, 7.0),
        ("l1", -7.0, 7.0),
        ("mean", -7.0, -7.0),
    ],
)
def test_protected_meaning_on_one_number(name: str, x: float, expected: float) -> None:
    value = np.asarray(UNARIES[name](np.full((1, 1), x))).item()
    assert value == pytest.approx(expected, rel=1e-12)


def test_hand_worked_reductions() -> None:
    x = np.array([[1.0, -2.0], [3.0, 4.0]])
    assert UNARIES["l1"](x) == 10
    assert UNARIES["fro"](x) == pytest.approx(math.sqrt(30))
    assert UNARIES["mean"](x) == UNARIES["norm_sum"](x) == 1.5
    assert UNARIES["std"](x) == pytest.approx(math.sqrt(30 / 4 - 2.25))
    assert UNARIES["minmax"](x).tolist() == [[0.5, 0.0], [5 / 6, 1.0]]


def test_softmax_runs_along_axis_0() -> None:
    x = np.random.default_rng(0).normal(size=(3, 5))
    assert UNARIES["softmax"](x).sum(axis=0) == pytest.approx(np.ones(5))
    assert np.exp(UNARIES["log_softmax"](x)) == pytest.approx(UNARIES["softmax"](x))


def test_sums_are_rescaled_to_the_true_element_count_and_means_are_not() -> None:
    x = np.random.default_rng(0).normal(size=(3, 5))
    for name, factor in {"l1": 4.0, "fro": 2.0, "mean": 1.0, "std": 1.0, "norm_sum": 1.0}.items():
        assert UNARIES[name](x, column_scale=4.0) == pytest.approx(factor * UNARIES[name](x))


def test_a_constant_tensor_has_no_spread_whatever_its_rounding() -> None:
    x = np.full((7, 3), 0.1)
    assert UNARIES["std"](x) == 0
    assert not UNARIES["zscore"](x).any()
    assert not UNARIES["minmax"](x).any()


def test_what_counts_as_noise_is_relative_to_the_tensor() -> None:
    tiny = np.array([[1.0, 3.0]]) * 1e-20
    assert UNARIES["std"](tiny) == pytest.approx(1e-20)
    assert UNARIES["zscore"](tiny) == pytest.approx(np.array([[-1.0, 1.0]]))
    assert UNARIES["minmax"](tiny) == pytest.approx(np.array([[0.0, 1.0]]))
    huge = np.array([[1e15, 1e15 + 0.125]])  # apart by a part in 10^16
    assert UNARIES["std"](huge) == 0
    assert not UNARIES["zscore"](huge).any()
