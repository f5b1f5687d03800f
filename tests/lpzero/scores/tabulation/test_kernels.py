"""The kernels: every number is that of the primitive's body, to the last bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lpzero.arrays import FloatArray
from lpzero.scores import stacks
from lpzero.scores.tabulation.kernels import (
    Buffers,
    Operand,
    matrix_kernel,
    mean_kernel,
    number_kernel,
    sums,
)
from primitives.registry import UNARIES

NAMES = [name for name in UNARIES if name != "disconnect"]


def operands(shape: tuple[int, int, int]) -> dict[str, FloatArray]:
    """Stacks that reach every guard, and those that reach none."""
    rng = np.random.default_rng(1)
    drawn = rng.normal(size=shape)
    zeros = np.where(rng.random(shape) < 0.3, 0.0, drawn)
    return {
        "both signs": drawn,
        "positive": np.abs(drawn) + 0.1,
        "non-negative with zeros": np.abs(zeros),
        "negative": -np.abs(drawn) - 0.1,
        "zeros of both signs": np.where(drawn > 0, zeros, -0.0),
        "tiny": drawn * 1e-12,
        "huge": drawn * 1e60,
        "beyond the clip": drawn * 40.0,
        "below the clip": -np.abs(drawn) * 400.0 - 0.1,
        "constant": np.full(shape, -2.5),
        "mixed sizes": drawn * np.logspace(-11, 3, shape[0])[:, np.newaxis, np.newaxis],
    }


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 8, 1), (2, 64, 2), (3, 7, 5), (4, 48, 9)])
@pytest.mark.parametrize("name", NAMES)
def test_a_kernel_gives_the_bits_of_the_body(name: str, shape: tuple[int, int, int]) -> None:
    primitive, column_scale = UNARIES[name], 2.5
    for kind, values in operands(shape).items():
        total = sums(values)
        with np.errstate(all="ignore"):
            expected = stacks.apply(primitive, values, column_scale)
            operand = Operand(values, total, Buffers())
            numbers, matrices = number_kernel(primitive), matrix_kernel(primitive)
            if numbers is not None:
                found = numbers(operand) * column_scale**primitive.traits.grows
            else:
                assert matrices is not None
                found = np.full((2, *shape), np.nan).transpose(1, 0, 2, 3)[:, 1]  # not contiguous
                matrices(operand, found)
        np.testing.assert_array_equal(found, expected, err_msg=kind)


@pytest.mark.parametrize("name", ["zscore", "minmax", "log_softmax"])
def test_a_mean_without_its_matrix_is_that_of_the_matrix(name: str) -> None:
    drawn = np.random.default_rng(2).normal(size=(3, 16, 4))
    # The last two are nearly constant: the mean of x has an error as large as part of its spread.
    near = {"one": 1.0 + 1e-10 * drawn, "a thousand": 1e3 + 1e-7 * drawn}
    for kind, values in (operands((3, 16, 4)) | near).items():
        kernel = mean_kernel(UNARIES[name])
        assert kernel is not None
        with np.errstate(all="ignore"):
            expected = stacks.means(stacks.apply(UNARIES[name], values, 1.0))
            found = kernel(Operand(values, sums(values), Buffers())).reshape(-1)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15, err_msg=kind)


def test_parts_shared_by_kernels_do_not_depend_on_their_order() -> None:
    for kind, values in operands((3, 16, 4)).items():
        total = sums(values)
        results = []
        for names in (NAMES, NAMES[::-1]):
            operand, out = Operand(values, total, Buffers()), {}
            for name in names:
                numbers, matrices = (
                    number_kernel(UNARIES[name]),
                    matrix_kernel(UNARIES[name]),
                )
                out[name] = np.empty_like(values)
                with np.errstate(all="ignore"):
                    if numbers is not None:
                        out[name] = numbers(operand).copy()
                    elif matrices is not None:
                        matrices(operand, out[name])
            results.append(out)
        for name in NAMES:
            np.testing.assert_array_equal(results[0][name], results[1][name], err_msg=kind)


def test_a_primitive_declared_anew_has_no_kernel() -> None:
    def zscore(x, xp):  # type: ignore[no-untyped-def]
        return x - xp.mean(x)

    assert matrix_kernel(UNARIES["zscore"]) is not None
    assert matrix_kernel(replace(UNARIES["zscore"], body=zscore)) is None
