"""The built-in unaries on a stack (k, rows, columns), from parts that several of them share.

`Operand` computes the least and the largest element, absolute values, deviations, powers along
columns and so on when they are first asked for: the logarithm of x and that of |x|, zscore and std,
softmax and log_softmax then read the same numbers. Guards that cannot apply, because of the least
and the largest element, are left out. A result has the bits of the primitive's body
(`primitives.operations`) wherever the operand is finite, but for the sign of a zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property

import numpy as np

from lpzero.arrays import FloatArray
from primitives import guards, operations
from primitives.registry import Unary

_WIDE = 256  # elements of the inner loop where a row is combined with every row of a matrix


class Buffers:
    """Arrays by name that are used again for every operand."""

    def __init__(self) -> None:
        self._arrays: dict[str, FloatArray] = {}
        self._views: dict[tuple[str, tuple[int, ...]], FloatArray] = {}

    def get(self, name: str, shape: tuple[int, ...]) -> FloatArray:
        """An uninitialised array; the one given before under the name is overwritten."""
        view = self._views.get((name, shape))
        if view is None:
            size = math.prod(shape)
            if name not in self._arrays or self._arrays[name].size < size:
                self._arrays[name] = np.empty(size)
                self._views = {key: v for key, v in self._views.items() if key[0] != name}
            view = self._views[name, shape] = self._arrays[name][:size].reshape(shape)
        return view


class Operand:
    """A stack of matrices, each contiguous, and the parts that the primitives need of it.

    Numbers per matrix are (k, 1, 1), its `total` among them. x less its mean is written to
    `centred` if that is given. The method of a primitive's name writes its result to `out`, or
    returns it if it is one number per matrix, not yet rescaled to the true number of columns.
    `mean_of_...` is the mean of that result where it needs no matrix; it has other last bits.
    """

    def __init__(
        self,
        values: FloatArray,
        total: FloatArray,
        buffers: Buffers,
        centred: FloatArray | None = None,
    ) -> None:
        self.values, self.total, self._buffers, self._centred = values, total, buffers, centred
        self.flat = values.reshape(len(values), -1)

    def _like(self, name: str) -> FloatArray:
        return self._buffers.get(name, self.values.shape)

    @property
    def size(self) -> int:
        """The number of elements of a matrix."""
        return int(self.flat.shape[1])

    @cached_property
    def mean(self) -> FloatArray:
        return self.total / self.size

    @cached_property
    def low(self) -> FloatArray:
        return np.asarray(np.minimum.reduce(self.flat, axis=1).reshape(-1, 1, 1))

    @cached_property
    def high(self) -> FloatArray:
        return np.asarray(np.maximum.reduce(self.flat, axis=1).reshape(-1, 1, 1))

    @cached_property
    def is_positive(self) -> bool:
        """Whether every element of every matrix is."""
        return bool((self.low > 0).all())

    @cached_property
    def is_non_negative(self) -> bool:
        return bool((self.low >= 0).all())

    @cached_property
    def absolute(self) -> FloatArray:
        if self.is_non_negative:
            return self.values
        return np.absolute(self.values, out=self._like("absolute"))

    @cached_property
    def largest(self) -> FloatArray:
        """max |x|, exactly."""
        return np.maximum(np.absolute(self.low), np.absolute(self.high))

    @cached_property
    def smallest(self) -> float:
        """min |x| over all matrices."""
        if self.is_non_negative:
            return float(self.low.min())
        return float(self.absolute.min())

    @cached_property
    def is_within_exp(self) -> bool:
        """Whether no argument of an exponential is clipped."""
        return bool((self.largest <= guards.EXP_LIMIT).all())

    @cached_property
    def log_absolute(self) -> FloatArray:
        """log |x|, and 0 where x = 0."""
        size, out = self.absolute, self._like("log_absolute")
        return np.log(size if self.smallest > 0 else np.where(size > 0, size, 1.0), out=out)

    @cached_property
    def sum_of_absolutes(self) -> FloatArray:
        return self.total if self.is_non_negative else sums(self.absolute)

    @cached_property
    def sum_of_squares(self) -> FloatArray:
        return sums(np.multiply(self.values, self.values, out=self._like("temporary")))

    @cached_property
    def centred(self) -> FloatArray:
        out = self._like("centred") if self._centred is None else self._centred
        return np.subtract(self.values, self.mean, out=out)

    @cached_property
    def deviation(self) -> FloatArray:
        squares = np.multiply(self.centred, self.centred, out=self._like("temporary"))
        return np.sqrt(sums(squares) / self.size)

    def spread_or(self, spread: FloatArray, otherwise: float) -> FloatArray:
        """The spread, or `otherwise` where it is only rounding noise."""
        return np.where(spread > guards.SPREAD_FLOOR * self.largest, spread, otherwise)

    @cached_property
    def zscore_spread(self) -> FloatArray:
        return self.spread_or(self.deviation, guards.NOT_SPREAD)

    @cached_property
    def minmax_spread(self) -> FloatArray:
        return self.spread_or(self.high - self.low, guards.NOT_SPREAD)

    @cached_property
    def _fold(self) -> int:
        """How many rows are one row of the wide view."""
        rows, columns = self.values.shape[1:]
        fold = 1
        while rows % (2 * fold) == 0 and 2 * fold * columns <= _WIDE:
            fold *= 2
        return fold

    def _wide(self, values: FloatArray) -> FloatArray:
        """The same numbers (k, rows / fold, fold * columns): longer inner loops."""
        k, rows, columns = values.shape
        return values.reshape(k, rows // self._fold, self._fold * columns)

    def _against_rows(
        self, operation: np.ufunc, values: FloatArray, row: FloatArray, out: FloatArray
    ) -> FloatArray:
        """operation(values, row), the row (k, columns) against every row."""
        k, columns = row.shape
        folded = np.empty((k, self._fold, columns))
        folded[...] = row[:, np.newaxis]
        operation(self._wide(values), folded.reshape(k, 1, -1), out=self._wide(out))
        return out

    @cached_property
    def column_high(self) -> FloatArray:
        """The largest element (k, columns) of each column."""
        k, _, columns = self.values.shape
        high = np.maximum.reduce(self._wide(self.values), axis=1).reshape(k, self._fold, columns)
        return np.asarray(np.maximum.reduce(high, axis=1))

    @cached_property
    def shifted(self) -> FloatArray:
        """x less the largest of its column."""
        out = self._like("shifted")
        return self._against_rows(np.subtract, self.values, self.column_high, out)

    @property
    def log_power_sums(self) -> FloatArray:
        """What log_softmax subtracts from each column (k, columns)."""
        return np.asarray(self.column_high + np.log(self.power_sums))

    @cached_property
    def powers(self) -> FloatArray:
        return np.exp(self.shifted, out=self._like("powers"))

    @cached_property
    def power_sums(self) -> FloatArray:
        """The sums (k, columns) of the powers, added row after row."""
        if self.values.shape[2] == 1:
            return np.asarray(np.add.reduce(self.powers, axis=1))
        return np.asarray(
            np.einsum("krc->kc", self.powers)
        )  # the order of add.reduce, in less time

    def log(self, out: FloatArray) -> None:
        if self.is_positive:
            np.log(self.values, out=out)
        elif self.is_non_negative:
            out[...] = self.log_absolute
        else:
            is_positive = np.greater(self.values, 0.0)
            np.multiply(self.log_absolute, is_positive, out=out)

    def abslog(self, out: FloatArray) -> None:
        np.absolute(self.log_absolute, out=out)

    def abs(self, out: FloatArray) -> None:
        out[...] = self.absolute

    def square(self, out: FloatArray) -> None:
        np.multiply(self.values, self.values, out=out)

    def exp(self, out: FloatArray) -> None:
        if self.is_within_exp:
            np.exp(self.values, out=out)
        else:
            np.clip(self.values, -guards.EXP_LIMIT, guards.EXP_LIMIT, out=out)
            np.exp(out, out=out)

    def sigmoid(self, out: FloatArray) -> None:
        np.negative(self.values, out=out)
        if not self.is_within_exp:
            np.clip(out, -guards.EXP_LIMIT, guards.EXP_LIMIT, out=out)
        np.exp(out, out=out)
        out += 1.0
        np.divide(1.0, out, out=out)

    def relu(self, out: FloatArray) -> None:
        if self.is_non_negative:
            out[...] = self.absolute
        else:  # (x + |x|) / 2 is exact
            np.add(self.values, self.absolute, out=out)
            out *= 0.5

    def sqrt(self, out: FloatArray) -> None:
        if self.is_non_negative:
            np.sqrt(self.absolute, out=out)
        else:
            self.relu(out)
            np.sqrt(out, out=out)

    def inverse(self, out: FloatArray) -> None:
        if self.smallest >= guards.INVERSE_FLOOR:
            np.divide(1.0, self.values, out=out)
            return
        np.maximum(self.absolute, guards.INVERSE_FLOOR, out=out)
        signs = np.add(self.values, 0.0, out=self._like("temporary"))  # zero counts as positive
        np.copysign(out, signs, out=out)
        np.divide(1.0, out, out=out)

    def neg(self, out: FloatArray) -> None:
        np.negative(self.values, out=out)

    def identity(self, out: FloatArray) -> None:
        out[...] = self.values

    def zscore(self, out: FloatArray) -> None:
        np.divide(self.centred, self.zscore_spread, out=out)

    def minmax(self, out: FloatArray) -> None:
        np.subtract(self.values, self.low, out=out)
        out /= self.minmax_spread

    def softmax(self, out: FloatArray) -> None:
        self._against_rows(np.divide, self.powers, self.power_sums, out)

    def log_softmax(self, out: FloatArray) -> None:
        self._against_rows(np.subtract, self.shifted, np.log(self.power_sums), out)

    @cached_property
    def _mean_of_centred(self) -> FloatArray:
        """What rounding left of it: about the error of `mean`."""
        return sums(self.centred) / self.size

    def mean_of_zscore(self) -> FloatArray:
        return self._mean_of_centred / self.zscore_spread

    def mean_of_minmax(self) -> FloatArray:
        # The difference of two large numbers is exact, so it has to have the mean's error back.
        return (self._mean_of_centred + (self.mean - self.low)) / self.minmax_spread

    def mean_of_log_softmax(self) -> FloatArray:
        subtracted = np.log(self.power_sums).mean(axis=1).reshape(-1, 1, 1)
        return np.asarray(sums(self.shifted) / self.size - subtracted)

    def fro(self) -> FloatArray:
        return np.sqrt(self.sum_of_squares)

    def l1(self) -> FloatArray:
        return self.sum_of_absolutes

    def average(self) -> FloatArray:
        return self.mean

    def std(self) -> FloatArray:
        return self.spread_or(self.deviation, 0.0)


def sums(values: FloatArray) -> FloatArray:
    """The sum (k, 1, 1) of each matrix."""
    flat = values.reshape(len(values), -1)
    return np.asarray(np.add.reduce(flat, axis=1).reshape(-1, 1, 1))


_AS_MATRICES: dict[str, Callable[[Operand, FloatArray], None]] = {
    "log": Operand.log,
    "abslog": Operand.abslog,
    "abs": Operand.abs,
    "square": Operand.square,
    "exp": Operand.exp,
    "zscore": Operand.zscore,
    "relu": Operand.relu,
    "inverse": Operand.inverse,
    "softmax": Operand.softmax,
    "sigmoid": Operand.sigmoid,
    "log_softmax": Operand.log_softmax,
    "sqrt": Operand.sqrt,
    "neg": Operand.neg,
    "minmax": Operand.minmax,
    "identity": Operand.identity,
}
_AS_NUMBERS: dict[str, Callable[[Operand], FloatArray]] = {
    "fro": Operand.fro,
    "norm_sum": Operand.average,
    "l1": Operand.l1,
    "mean": Operand.average,
    "std": Operand.std,
}


_AS_MEANS: dict[str, Callable[[Operand], FloatArray]] = {
    "zscore": Operand.mean_of_zscore,
    "minmax": Operand.mean_of_minmax,
    "log_softmax": Operand.mean_of_log_softmax,
}


def matrix_kernel(primitive: Unary) -> Callable[[Operand, FloatArray], None] | None:
    """The method that writes the primitive's matrices; None if it is from outside."""
    return _AS_MATRICES.get(primitive.name) if is_built_in(primitive) else None


def mean_kernel(primitive: Unary) -> Callable[[Operand], FloatArray] | None:
    """The method that returns the means of the primitive's matrices; None if it needs them."""
    return _AS_MEANS.get(primitive.name) if is_built_in(primitive) else None


def number_kernel(primitive: Unary) -> Callable[[Operand], FloatArray] | None:
    """The method that returns the primitive's numbers; None if it is from outside."""
    return _AS_NUMBERS.get(primitive.name) if is_built_in(primitive) else None


def is_built_in(primitive: Unary) -> bool:
    """Whether it is one of the project's own, which a user may have declared anew."""
    return primitive.body.__module__ == operations.__name__
