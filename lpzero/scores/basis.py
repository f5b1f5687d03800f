"""Which chains of a tensor are multiplied, and how the others follow from them.

zscore(f) and minmax(f) are a * f + b on each tensor, so the products of f, zscore(f) and minmax(f)
with anything follow from those of one matrix, f less its mean. It is the centred one that is
multiplied: f is then recovered by an addition, where zscore from f would be a difference of
nearly equal numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from lpzero.arrays import FloatArray, IntArray
from lpzero.scores.chains import Node
from lpzero.scores.kernels import is_built_in
from primitives.registry import get_unary

AFFINE = ("zscore", "minmax")


def is_affine(name: str) -> bool:
    """Whether the operation is a * x + b on each tensor, as declared by the project."""
    return name in AFFINE and is_built_in(get_unary(name))


@dataclass(slots=True)
class Basis:
    """The rows that are multiplied: of each matrix chain its row, and of each centred prefix.

    own: rows by the chain's row, -1 where the chain follows from a centred prefix. centred: rows by
    the identity of the prefix's node. source: (chains,) the row that each chain follows from.
    """

    own: IntArray
    source: IntArray
    centred: dict[int, int] = field(default_factory=dict)
    size: int = 0

    @classmethod
    def of(cls, tree: Node, n_matrices: int) -> Basis:
        """The basis of a statistic's tree of chains, `n_matrices` of them matrices."""
        basis = cls(np.full(n_matrices, -1), np.full(n_matrices, -1))
        basis._add(tree, None)
        return basis

    def _add(self, node: Node, from_parent: int | None) -> None:
        """Rows for the node and what continues it; `from_parent`: the row it follows from."""
        affine = [
            child
            for name, child in node.children.items()
            if is_affine(name) and child.matrix_row is not None
        ]
        row = node.matrix_row
        needs_row = row is not None and from_parent is None
        shared = None
        if len(affine) + needs_row > 1:
            shared = self.centred[id(node)] = self._next()
        if row is not None:
            found = shared if from_parent is None else from_parent
            if found is None:
                found = self.own[row] = self._next()
            self.source[row] = found
        for name, child in node.children.items():
            self._add(child, shared if is_affine(name) else None)

    @property
    def follows(self) -> IntArray:
        """The chains that are not rows of their own."""
        return np.flatnonzero(self.own < 0)

    def _next(self) -> int:
        self.size += 1
        return self.size - 1


@dataclass(slots=True, eq=False)
class Combination:
    """Each chain as scale * source + offset on each of k tensors: scale, offset (k, chains)."""

    basis: Basis
    scale: FloatArray
    offset: FloatArray

    @classmethod
    def of(cls, basis: Basis, k: int) -> Combination:
        """Every chain is its source."""
        n_chains = len(basis.source)
        return cls(basis, np.ones((k, n_chains)), np.zeros((k, n_chains)))

    def of_rows(self, tensor: int, products: FloatArray) -> FloatArray:
        """The products (..., chains, any) from those of the basis and of ones (..., size + 1, any).

        A row is read only by the chains that follow from it, so one that is NaN stays among them.
        """
        follows = self.basis.follows
        found = products[..., self.basis.source, :]
        found[..., follows, :] *= self.scale[tensor, follows, np.newaxis]
        found[..., follows, :] += products[..., -1:, :] * self.offset[tensor, follows, np.newaxis]
        return np.asarray(found)
