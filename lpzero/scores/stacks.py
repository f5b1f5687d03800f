"""Applies primitives to many matrices of one shape at once, as stacks (k, rows, columns).

A primitive's body calls its reductions through `xp`; with a namespace whose reductions are per
matrix, one call computes k matrices. The result of a matrix is bit-identical to that of the matrix
alone, whatever else is in the stack. Two stacks are combined as `primitives.naive` combines two
matrices.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lpzero.arrays import FloatArray
from primitives.properties import Gives
from primitives.registry import Binary, Unary
from primitives.tensors import Matrix, kept_columns


class NonFiniteError(Exception):
    """An intermediate result overflowed float64."""


def scalars(values: FloatArray) -> Matrix:
    """One number (k,) for each matrix."""
    return Matrix(finite(values).reshape(-1, 1, 1), 1)


def finite(values: FloatArray) -> FloatArray:
    """The values; raise NonFiniteError unless all are finite."""
    if not np.isfinite(values).all():
        raise NonFiniteError
    return values


class _EachMatrix:
    """NumPy with full reductions computed matrix by matrix: (k, r, c) -> (k, 1, 1)."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    @staticmethod
    def mean(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
        if axis is None:
            return means(x).reshape(-1, 1, 1)
        return np.mean(x, axis=axis, keepdims=keepdims)

    @staticmethod
    def sum(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
        return _each(np.add, x, axis, keepdims)

    @staticmethod
    def amax(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
        return _each(np.maximum, x, axis, keepdims)

    @staticmethod
    def amin(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
        return _each(np.minimum, x, axis, keepdims)


_EACH = _EachMatrix()
# Needed on every call, so cached by name: hashing a primitive hashes all its traits.
_known: dict[str, tuple[Unary, bool]] = {}


def _each(operation: np.ufunc, x: Any, axis: int | None, keepdims: bool) -> Any:
    if axis is not None:
        return operation.reduce(x, axis=axis, keepdims=keepdims)
    return operation.reduce(x.reshape(len(x), -1), axis=1).reshape(-1, 1, 1)


def apply(primitive: Unary, values: FloatArray, column_scale: float) -> FloatArray:
    """The primitive on each matrix of a stack (k, r, c): the same shape, or (k, 1, 1)."""
    if not takes_stacks(primitive):
        return np.stack([np.atleast_2d(primitive(x, column_scale)) for x in values])
    result, grows = primitive.body(values, _EACH), primitive.traits.grows
    return np.asarray(result * column_scale**grows if grows else result)


def combine(primitive: Binary, a: Matrix, b: Matrix, scalar_involved: bool) -> Matrix:
    """The operation on each pair of matrices."""
    if scalar_involved:
        is_product = primitive.contracts
        values = a.values * b.values if is_product else primitive.body(a.values, b.values, np)
        return Matrix(finite(values), max(a.true_columns, b.true_columns))
    if primitive.contracts:
        return _contract(primitive, a, b)
    if not _have_same_shape(a, b):
        return _of_means(primitive, a, b)
    return Matrix(finite(primitive.body(a.values, b.values, np)), a.true_columns)


def mean_of_product(primitive: Binary, a: Matrix, b: Matrix) -> FloatArray:
    """The means (k,) of matrix products, without computing them: colmean(a)·rowmean(b)."""
    partner = _partner(a, b)
    if partner is None:
        return means(_of_means(primitive, a, b).values)
    others = partner.mean(axis=2)  # (k, kept)
    sums: FloatArray = np.add.reduce(a.values.mean(axis=1) * others, axis=1) * a.column_scale
    return finite(sums)


def _contract(primitive: Binary, a: Matrix, b: Matrix) -> Matrix:
    partner = _partner(a, b)
    if partner is None:
        return _of_means(primitive, a, b)
    width = b.true_columns if a.true_columns == b.rows else b.rows
    return Matrix(finite(np.matmul(a.values, partner) * a.column_scale), width)


def _partner(a: Matrix, b: Matrix) -> FloatArray | None:
    """The right factor (k, kept columns of a, any) of the product with a; None if none fits."""
    if a.true_columns == b.rows:
        chosen = slice(None) if a.kept == b.rows else kept_columns(b.rows, a.kept)
        return np.asarray(b.values[:, chosen])
    if a.true_columns == b.true_columns and a.kept == b.kept:
        return np.asarray(b.values.transpose(0, 2, 1))
    return None


def _have_same_shape(a: Matrix, b: Matrix) -> bool:
    return a.values.shape == b.values.shape and a.true_columns == b.true_columns


def _of_means(primitive: Binary, a: Matrix, b: Matrix) -> Matrix:
    left, right = (scalars(means(x.values)) for x in (a, b))
    return combine(primitive, left, right, True)


def means(values: FloatArray) -> FloatArray:
    """The mean of each matrix (k,) of a stack (k, r, c)."""
    sums = np.add.reduce(values.reshape(len(values), -1), axis=1)
    return np.asarray(sums / (values.shape[1] * values.shape[2]))


def gives_scalar(primitive: Unary) -> bool:
    """Whether the primitive reduces a matrix to one number."""
    return primitive.traits.gives is Gives.SCALAR


def takes_stacks(primitive: Unary) -> bool:
    """Whether the body can be called once for a whole stack."""
    known = _known.get(primitive.name)
    if known is None or known[0] is not primitive:
        known = _known[primitive.name] = primitive, _test_on_stack(primitive)
    return known[1]


def _test_on_stack(primitive: Unary) -> bool:
    """Whether, on a trial stack, the body gives the same results as on each matrix alone.

    The built-in primitives do. A body that does not reduce through `xp` (x.mean() instead of
    xp.mean(x)) does not, and is called matrix by matrix.
    """
    trial = np.random.Generator(np.random.Philox(0)).normal(size=(3, 4, 2))
    try:
        together = np.asarray(primitive.body(trial, _EACH))
        alone = [primitive.body(x, np) for x in trial]
    except (TypeError, ValueError, IndexError, AttributeError):
        return False
    expected = np.stack([np.atleast_2d(x) for x in alone])
    return together.shape == expected.shape and bool(np.array_equal(together, expected))
