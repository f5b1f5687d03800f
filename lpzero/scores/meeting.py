"""Two stacks under a binary operation, met as `primitives.naive` lets two matrices meet."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.scores import stacks
from primitives.registry import Binary
from primitives.tensors import kept_columns


class NonFiniteError(Exception):
    """An intermediate result left float64."""


class Stack(NamedTuple):
    """k matrices (k, rows, kept) of one true width."""

    values: FloatArray
    true_columns: int

    @property
    def stretch(self) -> float:
        """True over kept columns."""
        return self.true_columns / int(self.values.shape[2])


def scalars(values: FloatArray) -> Stack:
    """One number (k,) for each matrix."""
    return Stack(finite(values).reshape(-1, 1, 1), 1)


def finite(values: FloatArray) -> FloatArray:
    """The values, all finite."""
    if not np.isfinite(values).all():
        raise NonFiniteError
    return values


def meet(primitive: Binary, a: Stack, b: Stack, scalar_involved: bool) -> Stack:
    """The operation on each pair of matrices."""
    if scalar_involved:
        product = a.values * b.values if primitive.contracts else primitive.body(
            a.values, b.values, np)  # fmt: skip
        return Stack(finite(product), max(a.true_columns, b.true_columns))
    if primitive.contracts:
        return _contract(primitive, a, b)
    if not _alike(a, b):
        return _of_means(primitive, a, b)
    return Stack(finite(primitive.body(a.values, b.values, np)), a.true_columns)


def mean_of_product(primitive: Binary, a: Stack, b: Stack) -> FloatArray:
    """The means (k,) of matrix products, without making them: colmean(a)·rowmean(b)."""
    partner = _partner(a, b)
    if partner is None:
        return stacks.means(_of_means(primitive, a, b).values)
    others = partner.mean(axis=2)  # (k, kept)
    sums: FloatArray = np.add.reduce(a.values.mean(axis=1) * others, axis=1) * a.stretch
    return finite(sums)


def _contract(primitive: Binary, a: Stack, b: Stack) -> Stack:
    partner = _partner(a, b)
    if partner is None:
        return _of_means(primitive, a, b)
    width = b.true_columns if a.true_columns == b.values.shape[1] else b.values.shape[1]
    return Stack(finite(np.matmul(a.values, partner) * a.stretch), width)


def _partner(a: Stack, b: Stack) -> FloatArray | None:
    """What a's columns are summed against (k, kept columns of a, any); None if nothing fits."""
    kept, rows = a.values.shape[2], b.values.shape[1]
    if a.true_columns == rows:
        return b.values if kept == rows else np.asarray(b.values[:, kept_columns(rows, kept)])
    if a.true_columns == b.true_columns and kept == b.values.shape[2]:
        return np.asarray(b.values.transpose(0, 2, 1))
    return None


def _alike(a: Stack, b: Stack) -> bool:
    return a.values.shape == b.values.shape and a.true_columns == b.true_columns


def _of_means(primitive: Binary, a: Stack, b: Stack) -> Stack:
    left, right = (scalars(stacks.means(x.values)) for x in (a, b))
    return meet(primitive, left, right, True)
