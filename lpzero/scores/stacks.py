"""Matrices of one shape together: gathered from sketches, and primitives applied to their stacks.

Aligned statistics (W with G) are read together, tensor by tensor. A stack is (k, rows, columns).

A primitive's body calls its reductions through `xp`; with a namespace whose reductions are per
matrix, one call computes k matrices. The result of a matrix is bit-identical to that of the matrix
alone, whatever else is in the stack. Two stacks are combined as `primitives.naive` combines two
matrices.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.sketches.sketch import Sketch, SketchError
from primitives.properties import Gives
from primitives.registry import Binary, Unary
from primitives.statistics import STATISTICS
from primitives.tensors import Matrix, have_same_shape, right_factor


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
_stackable: dict[str, tuple[Unary, bool]] = {}


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
    if not have_same_shape(a, b):
        return _of_means(primitive, a, b)
    return Matrix(finite(primitive.body(a.values, b.values, np)), a.true_columns)


def mean_of_product(primitive: Binary, a: Matrix, b: Matrix) -> FloatArray:
    """The means (k,) of matrix products, without computing them: colmean(a)·rowmean(b)."""
    factor = right_factor(a, b)
    if factor is None:
        return means(_of_means(primitive, a, b).values)
    others = factor.values.mean(axis=2)  # (k, kept)
    sums: FloatArray = np.add.reduce(a.values.mean(axis=1) * others, axis=1) * a.column_scale
    return finite(sums)


def _contract(primitive: Binary, a: Matrix, b: Matrix) -> Matrix:
    factor = right_factor(a, b)
    if factor is None:
        return _of_means(primitive, a, b)
    product = np.matmul(a.values, factor.values) * a.column_scale
    return Matrix(finite(product), factor.true_columns)


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
    tested = _stackable.get(primitive.name)
    if tested is None or tested[0] is not primitive:
        tested = _stackable[primitive.name] = primitive, _test_on_stack(primitive)
    return tested[1]


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


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """One tensor in float32 and its place: row of the sketch, statistic, block or end, index."""

    row: int
    statistic: str
    position: int | str
    index: int
    matrix: Matrix

    def identity(self) -> Hashable:
        """What the values of its chains depend on; the numbers as a digest."""
        values = self.matrix.values
        digest = hashlib.blake2b(values.tobytes(), digest_size=16).digest()
        return digest, values.shape, self.matrix.true_columns

    def copied(self) -> Tensor:
        """The tensor without its sketch, which need not stay in memory."""
        matrix = Matrix(self.matrix.values.copy(), self.matrix.true_columns)
        return replace(self, matrix=matrix)


Aligned = Sequence[Tensor]  # one tensor of each statistic of a group, or one alone


def groups() -> dict[str, tuple[str, ...]]:
    """The statistics of each alignment group, in their declared order."""
    aligned: dict[str, tuple[str, ...]] = {}
    for name, statistic in STATISTICS.items():
        aligned[statistic.group] = (*aligned.get(statistic.group, ()), name)
    return aligned


def tensors_at(row: int, sketch: Sketch, position: int | str, statistic: str) -> list[Tensor]:
    """The tensors of one statistic at a block or an end."""
    return [
        Tensor(row, statistic, position, index, matrix)
        for index, matrix in enumerate(sketch.stored_matrices(position, statistic))
    ]


def aligned_tensors(row: int, sketch: Sketch, statistics: Sequence[str]) -> Iterator[Aligned]:
    """The tensors of aligned statistics at every block, one of each statistic at a time."""
    for block in range(sketch.n_blocks):
        of_block = [tensors_at(row, sketch, block, name) for name in statistics]
        if len({len(tensors) for tensors in of_block}) != 1:
            names = " and ".join(statistics)
            raise SketchError(f"{names} of block {block} have different numbers of tensors")
        yield from zip(*of_block, strict=True)


def gather(
    tensors: Iterable[Aligned], elements: int, kind: Callable[[Tensor], Hashable]
) -> Iterator[Sequence[Aligned]]:
    """Tensors of one shape and kind together, at most `elements` numbers of a statistic.

    Shapes and kinds come in the order of their first tensor, their tensors in the order given.
    """
    of_shape: dict[Hashable, list[Aligned]] = {}
    for aligned in tensors:
        key = tuple((tensor.matrix.values.shape, kind(tensor)) for tensor in aligned)
        of_shape.setdefault(key, []).append(aligned)
    for alike in of_shape.values():
        step = max(1, elements // max(tensor.matrix.values.size for tensor in alike[0]))
        while alike:
            yield alike[:step]
            del alike[:step]
