from __future__ import annotations

import numpy as np
import pytest
import torch

from primitives import Matrix, TensorError, cut, kept_columns, whole


def test_kept_columns_are_evenly_spaced_and_distinct() -> None:
    for true in range(1, 40):
        for kept in range(1, true + 1):
            index = kept_columns(true, kept)
            steps = np.diff(index)
            assert index[0] >= 0
            assert index[-1] < true
            assert len(set(index.tolist())) == kept
            assert kept == 1 or steps.max() - steps.min() <= 1


def test_kept_columns_are_in_the_middle_of_their_steps() -> None:
    assert kept_columns(10, 4).tolist() == [1, 3, 6, 8]
    assert kept_columns(9, 3).tolist() == [1, 4, 7]
    assert kept_columns(5, 1).tolist() == [2]


def test_all_columns_kept_is_every_column() -> None:
    assert kept_columns(7, 7).tolist() == list(range(7))


@pytest.mark.parametrize("kept", [0, 8])
def test_keeping_an_impossible_number_of_columns_is_refused(kept: int) -> None:
    with pytest.raises(TensorError, match="between 1 and 7"):
        kept_columns(7, kept)


def test_cut_keeps_rows_whole_and_as_many_columns_as_fit() -> None:
    matrix = cut(np.arange(60.0).reshape(6, 10), 25)
    assert matrix.values.shape == (6, 4)
    assert matrix.true_shape == (6, 10)
    assert matrix.column_scale == 2.5
    assert np.array_equal(matrix.values[0], kept_columns(10, 4))


def test_cut_keeps_at_least_one_column() -> None:
    assert cut(np.ones((9, 5)), 4).values.shape == (9, 1)


def test_cut_of_a_small_tensor_is_whole() -> None:
    assert cut(np.ones((3, 4)), 12).column_scale == 1.0


def test_matrices_are_float64_in_their_own_library() -> None:
    assert whole(np.ones((2, 2), dtype=np.float32)).values.dtype == np.float64
    assert cut(torch.ones(2, 9), 6).values.dtype == torch.float64


def test_numpy_and_torch_are_cut_alike() -> None:
    values = np.random.default_rng(0).normal(size=(3, 11))
    assert np.array_equal(cut(values, 12).values, cut(torch.tensor(values), 12).values.numpy())


@pytest.mark.parametrize("shape", [(3,), (2, 3, 4), (2, 3, 4, 5), (0, 3), ()])
def test_a_tensor_that_is_not_a_matrix_is_refused(shape: tuple[int, ...]) -> None:
    for make in (whole, lambda values: cut(values, 5)):
        with pytest.raises(TensorError, match="two non-empty"):
            make(np.ones(shape))


def test_a_stack_of_matrices_has_their_rows_and_columns() -> None:
    stack = Matrix(np.ones((5, 2, 3)), 6)
    assert (stack.rows, stack.kept, stack.true_shape, stack.column_scale) == (2, 3, (2, 6), 2.0)
    for shape in ((5, 0, 3), (2, 2, 2, 2)):
        with pytest.raises(TensorError, match="three of a stack"):
            Matrix(np.ones(shape), 6)


def test_a_width_below_the_kept_columns_is_refused() -> None:
    with pytest.raises(TensorError, match="true_columns"):
        Matrix(np.ones((2, 3)), 2)


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(TensorError, match="at least 1"):
        cut(np.ones((2, 3)), 0)
