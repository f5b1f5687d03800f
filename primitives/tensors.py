"""Networks as formulas see them: at each position matrices, cut to some of their columns.

A statistic's tensor is viewed in two dimensions. The sketch keeps axis 0 whole and cuts the last
axis to evenly spaced columns, so that softmax along axis 0 stays exact and equal shapes are cut
the same way. Only `kept_columns` decides which columns these are.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primitives.errors import TensorError
from primitives.reductions import POSITION_REDUCTIONS, Reduction

Array = Any  # a NumPy array or a torch tensor


def namespace(values: Array) -> Any:
    """The module whose functions work on `values`: numpy or torch."""
    if type(values).__module__.split(".")[0] == "torch":
        return sys.modules["torch"]  # a torch tensor exists, so torch has been imported
    return np


def kept_columns(true: int, kept: int) -> NDArray[np.intp]:
    """Indices (kept,) of the columns that a sketch of `true` columns keeps.

    >>> kept_columns(10, 4).tolist()
    [1, 3, 6, 8]
    """
    if not 1 <= kept <= true:
        raise TensorError(f"cannot keep {kept} of {true} columns; keep between 1 and {true}")
    return np.floor((np.arange(kept) + 0.5) * true / kept).astype(np.intp)


@dataclass(frozen=True, slots=True, eq=False)
class Matrix:
    """values: (rows, kept columns), or a stack (k, rows, kept columns) of k matrices of one width.

    true_columns: the width before the cut.
    """

    values: Array
    true_columns: int

    def __post_init__(self) -> None:
        if len(self.values.shape) not in (2, 3) or 0 in tuple(self.values.shape):
            raise TensorError(
                f"a matrix of shape {tuple(self.values.shape)} was given; expected two non-empty"
                " dimensions, or three of a stack: reshape the tensor to rows x columns"
            )
        if self.true_columns < self.kept:
            raise TensorError(
                f"{self.kept} columns are kept of only {self.true_columns} true ones;"
                " true_columns is the width before the cut"
            )

    @property
    def rows(self) -> int:
        return int(self.values.shape[-2])

    @property
    def kept(self) -> int:
        return int(self.values.shape[-1])

    @property
    def column_scale(self) -> float:
        """True over kept columns: the factor that rescales a sum over the cut axis."""
        return self.true_columns / self.kept

    @property
    def true_shape(self) -> tuple[int, int]:
        return self.rows, self.true_columns


def have_same_shape(a: Matrix, b: Matrix) -> bool:
    """True if the two can be combined element by element."""
    return a.true_columns == b.true_columns and a.values.shape == b.values.shape


def right_factor(a: Matrix, b: Matrix) -> Matrix | None:
    """What a is multiplied by in a matrix product: b, or b transposed; None if neither fits.

    True sizes decide. Only the rows that a keeps as columns are there, so the product of the two is
    still to be rescaled by a's `column_scale`.
    """
    if a.true_columns == b.rows:
        rows = b.values if a.kept == b.rows else b.values[..., kept_columns(b.rows, a.kept), :]
        return Matrix(rows, b.true_columns)
    if a.true_columns == b.true_columns and a.kept == b.kept:
        return Matrix(b.values.swapaxes(-2, -1), b.rows)
    return None


def columns_that_fit(rows: int, columns: int, limit: int | None) -> int:
    """How many columns a matrix keeps in `limit` elements: at least one, all without a limit."""
    return columns if limit is None else max(1, min(columns, limit // rows))


def whole(values: Array) -> Matrix:
    """The matrix with every column kept, in float64."""
    doubled = as_float64(values)
    if len(doubled.shape) != 2:  # a stack of matrices is not what one tensor is
        raise TensorError(
            f"a tensor of shape {tuple(doubled.shape)} was given; expected two non-empty"
            " dimensions: reshape it to rows x columns"
        )
    return Matrix(doubled, int(doubled.shape[1]))


def cut(values: Array, limit: int) -> Matrix:
    """The matrix with as many evenly spaced columns as fit in `limit` elements, at least one."""
    if limit < 1:
        raise TensorError(f"a limit of {limit} elements was given; expected at least 1")
    full = whole(values)
    kept = columns_that_fit(full.rows, full.kept, limit)
    if kept == full.kept:
        return full
    return Matrix(full.values[:, kept_columns(full.kept, kept)], full.kept)


def as_float64(values: Array) -> Array:
    """The same numbers in float64, still in their own library."""
    xp = namespace(values)
    if xp is np:
        return np.asarray(values, dtype=np.float64)
    return values.to(xp.float64)


# A statistic's name -> its matrices; a size's name -> one 1 x 1 matrix, as `number` makes it.
Block = Mapping[str, Sequence[Matrix]]


@dataclass(frozen=True, slots=True, eq=False)
class NetworkValues:
    """What was taken at each position of one network."""

    blocks: Sequence[Block]
    embedding: Block | None = None
    head: Block | None = None

    def __post_init__(self) -> None:
        if not self.blocks:
            raise TensorError("no blocks were given; an architecture has at least one")

    def read(self, reduction: Reduction) -> Sequence[Block] | None:
        """The positions that the reduction reads; None if the network lacks that end."""
        facts = POSITION_REDUCTIONS[reduction]
        if facts.end is None:
            return facts.select(self.blocks)
        end = self.embedding if facts.end == "embedding" else self.head
        return None if end is None else (end,)


def as_network(value: NetworkValues | Sequence[Block]) -> NetworkValues:
    """The network; a plain sequence of blocks is one without ends."""
    return value if isinstance(value, NetworkValues) else NetworkValues(value)


def number(value: float, like: Array | None = None) -> list[Matrix]:
    """A size for a block: one 1 x 1 matrix, in the library of the array `like`."""
    if like is None or namespace(like) is np:
        made: Any = np.full((1, 1), float(value))
    else:
        made = like.new_full((1, 1), float(value), dtype=namespace(like).float64)
    return [Matrix(made, 1)]
