"""Which chains of a tensor are multiplied, and how the others follow from them.

Multiplying all pairs of matrices costs most, so what follows from a few products is not multiplied:

- zscore(f), minmax(f) and minmax(-f) are a * f + b on each tensor, so the products of f and of
  these with anything follow from those of one matrix, f less its mean. It is the centred one
  that is multiplied: f is then recovered by an addition, where zscore from f would be a difference
  of nearly equal numbers.
- log_softmax(f) is f less one number per column; the product with a row of such numbers needs only
  the columns' means of the other matrix.
- Some chains are sums of others (`_SUMS`). A sum is never much smaller than its parts on any
  element, so that what is zero stays zero: |f| is 2 relu(f) - f, but relu(f) is not (f + |f|) / 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from lpzero.arrays import FloatArray, IntArray
from lpzero.scores.chains import Chain, Node
from lpzero.scores.tabulation.kernels import is_built_in
from primitives.registry import get_unary

AFFINE = ("zscore", "minmax")
_NEGATIVE = "neg"
# The last operations of a chain, and the chains with factors that add up to it. A sketch's numbers
# are float32, so their squares and roots stay in float64's range.
_SUMS: dict[Chain, tuple[tuple[float, Chain], ...]] = {
    ("sqrt", "log"): ((0.5, ("log",)),),
    ("sqrt", "abslog"): ((1.0, ("log", "relu")), (-0.5, ("log",))),
    ("log", "abs"): ((2.0, ("log", "relu")), (-1.0, ("log",))),
    ("zscore", "abs"): ((2.0, ("zscore", "relu")), (-1.0, ("zscore",))),
    ("square", "abslog"): ((2.0, ("abslog",)),),
    ("square", "log"): ((2.0, ("log",)), (2.0, ("neg", "log"))),
    ("abs", "log"): ((1.0, ("log",)), (1.0, ("neg", "log"))),
    ("abs", "sqrt"): ((1.0, ("sqrt",)), (1.0, ("neg", "sqrt"))),
}
_NO_ROW = -1


def is_affine(name: str) -> bool:
    """Whether the operation is a * x + b on each tensor, as declared by the project."""
    return name in AFFINE and is_built_in(get_unary(name))


class Affine(NamedTuple):
    """A continuation of a prefix that is a * x + b of it: `name` of x, or of -x if negated."""

    name: str
    is_negated: bool
    node: Node


def affine_continuations(node: Node) -> Iterator[Affine]:
    """The prefix's zscore and minmax, and those of its negative, if they are matrix chains."""
    for name, child in node.children.items():
        if is_affine(name) and child.matrix_row is not None:
            yield Affine(name, False, child)
        if name == _NEGATIVE and is_built_in(get_unary(name)):
            for inner, grandchild in child.children.items():
                if is_affine(inner) and grandchild.matrix_row is not None:
                    yield Affine(inner, True, grandchild)


@dataclass(frozen=True, slots=True)
class Follower:
    """A chain by one or two others: first * factors[0] + second * factors[1].

    first, second: rows of matrix chains; where there is no second, its factor is 0. column: the row
    of numbers that is subtracted instead, of those that each tensor has, or -1.
    """

    first: int
    factors: tuple[float, float] = (1.0, 0.0)
    second: int = _NO_ROW
    column: int = _NO_ROW


@dataclass(slots=True)
class Basis:
    """What is multiplied: `size` matrices, `n_columns` rows of numbers per column, and ones.

    own: the matrix of each matrix chain, -1 where the chain follows from others. source: (chains,
    2), the one or two of them that each chain follows from. centred: the matrix of a
    prefix less its mean, by the identity of its node. followers: by chain. columns: the
    identity of the node whose log_softmax each row of numbers belongs to.
    """

    own: IntArray
    source: IntArray
    centred: dict[int, int] = field(default_factory=dict)
    followers: dict[int, Follower] = field(default_factory=dict)
    columns: dict[int, int] = field(default_factory=dict)
    size: int = 0

    @classmethod
    def of(cls, tree: Node, n_matrices: int) -> Basis:
        """The basis of a statistic's tree of chains, `n_matrices` of them matrices."""
        basis = cls(np.full(n_matrices, _NO_ROW), np.full((n_matrices, 2), _NO_ROW))
        nodes = dict(_walk(tree, ()))
        # Short chains first: what follows from others is nothing that others follow from.
        for chain in sorted(nodes, key=len):
            basis._follow(chain, nodes[chain], nodes)
        basis._add(tree, {})
        basis.source[:, 1] = basis.ones
        for row, follower in basis.followers.items():
            basis.source[row, 0] = basis.source[follower.first, 0]
            if follower.second >= 0:
                basis.source[row, 1] = basis.source[follower.second, 0]
            if follower.column >= 0:
                basis.source[row, 1] = basis.size + follower.column
        return basis

    def _follow(self, chain: Chain, node: Node, nodes: dict[Chain, Node]) -> None:
        """Note how the chain follows from others, if it does and nothing continues it."""
        is_ours = all(is_built_in(get_unary(name)) for name in chain)
        if node.matrix_row is None or node.children or not is_ours:
            return
        if chain[-1:] == ("log_softmax",):
            self._follow_column(node.matrix_row, chain[:-1], nodes)
            return
        parts = _SUMS.get(chain[-2:], ())
        rows = [self._row(chain[:-2] + part, nodes) for _, part in parts]
        if not rows or None in rows:
            return
        first, *others = (row for row in rows if row is not None)
        factors = parts[0][0], parts[1][0] if others else 0.0
        self.followers[node.matrix_row] = Follower(first, factors, *others)

    def _follow_column(self, row: int, operand: Chain, nodes: dict[Chain, Node]) -> None:
        is_negated = operand[-1:] == (_NEGATIVE,)
        first = self._row(operand[:-1] if is_negated else operand, nodes)
        if first is None:
            return
        column = self.columns[id(nodes[operand])] = len(self.columns)
        self.followers[row] = Follower(first, (-1.0 if is_negated else 1.0, 0.0), column=column)

    def _row(self, chain: Chain, nodes: dict[Chain, Node]) -> int | None:
        """The chain's row if others may follow from it."""
        row = nodes[chain].matrix_row if chain in nodes else None
        return None if row is None or row in self.followers else row

    def _add(self, node: Node, from_above: Mapping[int, int]) -> None:
        """Matrices for the node and what continues it.

        `from_above`: by the identity of a node, the matrix of a shorter prefix that it follows
        from.
        """
        followed = from_above.get(id(node))
        affine = [c.node for c in affine_continuations(node) if id(c.node) not in from_above]
        row = None if node.matrix_row in self.followers else node.matrix_row
        needs_row = row is not None and followed is None
        shared = None
        if len(affine) + needs_row > 1:
            shared = self.centred[id(node)] = self._next()
            from_above = {**from_above, **{id(continued): shared for continued in affine}}
        if row is not None:
            source = shared if followed is None else followed
            if source is None:
                source = self.own[row] = self._next()
            self.source[row, 0] = source
        for child in node.children.values():
            self._add(child, from_above)

    @property
    def ones(self) -> int:
        """The place of the ones among what is multiplied."""
        return self.size + len(self.columns)

    def _next(self) -> int:
        self.size += 1
        return self.size - 1


def _walk(node: Node, chain: Chain) -> Iterator[tuple[Chain, Node]]:
    """Every prefix of the chains."""
    yield chain, node
    for name, child in node.children.items():
        yield from _walk(child, (*chain, name))


@dataclass(slots=True, eq=False)
class Combination:
    """Each chain by its two sources on each of k tensors: scale (k, chains, 2), offset (k, chains).

    columns: (k, rows of numbers, kept), what log_softmax subtracts.
    """

    basis: Basis
    scale: FloatArray
    offset: FloatArray
    columns: FloatArray

    @classmethod
    def of(cls, basis: Basis, k: int, kept: int) -> Combination:
        """Every chain is its first source."""
        n_chains = len(basis.source)
        scale = np.zeros((k, n_chains, 2))
        scale[..., 0] = 1.0
        columns = np.zeros((k, len(basis.columns), kept))
        return cls(basis, scale, np.zeros((k, n_chains)), columns)

    def follow(self) -> None:
        """State the chains that follow from others, whose scales and offsets are known by now."""
        for row, follower in self.basis.followers.items():
            first, (factor, other) = follower.first, follower.factors
            self.scale[:, row, 0] = factor * self.scale[:, first, 0]
            offset = factor * self.offset[:, first]
            if follower.second >= 0:
                self.scale[:, row, 1] = other * self.scale[:, follower.second, 0]
                offset = offset + other * self.offset[:, follower.second]
            if follower.column >= 0:  # the offset nearly cancels with what is subtracted
                self.scale[:, row, 1] = -1.0
                self.columns[:, follower.column] -= offset[:, np.newaxis]
                offset = np.zeros_like(offset)
            self.offset[:, row] = offset

    def of_rows(self, tensor: int, products: FloatArray) -> FloatArray:
        """The products (..., chains, any) from those of what is multiplied (..., ones + 1, any).

        A row is read only by the chains that follow from it, so one that is NaN stays among them.
        """
        basis = self.basis
        whole = products[..., basis.source[:, 0], :]
        follows = np.flatnonzero(basis.own < 0)
        whole[..., follows, :] *= self.scale[tensor, follows, 0, np.newaxis]
        whole[..., follows, :] += products[..., -1:, :] * self.offset[tensor, follows, np.newaxis]
        both = np.flatnonzero(basis.source[:, 1] < basis.ones)
        others = products[..., basis.source[both, 1], :]
        whole[..., both, :] += others * self.scale[tensor, both, 1, np.newaxis]
        return np.asarray(whole)
