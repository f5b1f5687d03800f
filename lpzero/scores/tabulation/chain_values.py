"""Every chain of a stack of tensors: the mean of each, and the matrices that are multiplied.

    stack (k, rows, kept), tree  ->  means (prefixes, k), basis matrices (k, size, rows, kept)

A prefix of chains is computed once, in buffers that stay in the processor's cache, and its
continuations are computed while it is there (see `kernels`). Numbers that left float64 are looked
for afterwards: a sum is finite only if every element is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from lpzero.arrays import BoolArray, ByteCache, FloatArray
from lpzero.scores import stacks
from lpzero.scores.chains import Node
from lpzero.scores.tabulation.basis import Basis, Combination, affine_continuations
from lpzero.scores.tabulation.kernels import (
    Buffers,
    Operand,
    matrix_kernel,
    mean_kernel,
    number_kernel,
)
from primitives.registry import Unary, get_unary


@dataclass(frozen=True, slots=True, eq=False)
class Computed:
    """The chains of k tensors.

    means: (prefixes, k), those of continued numbers not filled yet. basis: (k, size, rows, kept),
    the matrices that are multiplied; overwritten when the next stack is computed. combination: each
    matrix chain by these.
    """

    means: FloatArray
    basis: FloatArray
    combination: Combination


@dataclass(slots=True, eq=False)
class _Prefix:
    """A node of the tree with everything that does not depend on the stack looked up.

    index: its place in the order of the tree; own, centred: its rows of the basis, or -1. write:
    the kernel of its matrices, mean: that of their means, if there is one and nothing continues
    the prefix.
    """

    node: Node
    index: int
    primitive: Unary | None
    own: int
    centred: int
    write: Callable[[Operand, FloatArray], None] | None
    mean: Callable[[Operand], FloatArray] | None
    matrices: list[_Prefix] = field(default_factory=list)
    numbers: list[_Prefix] = field(default_factory=list)

    @property
    def children(self) -> Iterator[_Prefix]:
        yield from self.matrices
        yield from self.numbers


_REMEMBERED_BYTES = 1 << 25


class ChainValues:
    """Computes the chains of one tree on one stack after another, in the same buffers.

    remembered_means: means of chains (chains,) by the identity of the tensor they were computed of.
    """

    def __init__(self, tree: Node, n_matrices: int) -> None:
        self.basis = Basis.of(tree, n_matrices)
        self.n_prefixes = 0
        self._root = self._prefix(tree, None)
        self.buffers: list[Buffers] = [Buffers()]
        self.remembered_means: ByteCache[FloatArray] = ByteCache(_REMEMBERED_BYTES)

    def _prefix(self, node: Node, primitive: Unary | None) -> _Prefix:
        own = -1 if node.matrix_row is None else int(self.basis.own[node.matrix_row])
        centred = self.basis.centred.get(id(node), -1)
        write = mean = None
        if primitive is not None:
            write = matrix_kernel(primitive)
            mean = None if node.children else mean_kernel(primitive)
        made = _Prefix(node, self.n_prefixes, primitive, own, centred, write, mean)
        self.n_prefixes += 1
        is_number = primitive is not None and stacks.gives_scalar(primitive)
        for name, child in node.children.items():
            operation = get_unary(name)
            to_number = is_number or stacks.gives_scalar(operation)
            kind = made.numbers if to_number else made.matrices
            kind.append(self._prefix(child, operation))
        return made

    def compute(
        self, values: FloatArray, column_scale: Sequence[float], multiplied: bool
    ) -> Computed:
        """The chains of a stack; `column_scale` is the true over the kept columns of each tensor.

        The matrices are computed only if they are `multiplied`.
        """
        k = len(values)
        shape = (k, self.basis.size if multiplied else 0, *values.shape[1:])
        basis = self.buffers[0].get("basis", shape)
        combination = Combination.of(self.basis, k, values.shape[2])
        work = _Stack(self, basis, combination, column_scale, values[0].size)
        work.record_sum(self._root, values)
        work.enter(self._root, values, 0)
        work.means += work.sums / work.size  # of a prefix one of the two was recorded
        combination.follow()
        if not np.isfinite(work.means).all():
            work.spoil(self._root, np.zeros(k, dtype=np.bool_))
        return Computed(work.means, basis, combination)

    def chain_means(self, means: FloatArray, n_chains: int) -> FloatArray:
        """The means of the chains (chains, any) from those of the prefixes (prefixes, any).

        Numbers are continued here, those of many stacks at once.
        """
        by_chain = np.zeros((n_chains, means.shape[1]))
        self._fill(self._root, means, by_chain)
        return by_chain

    def _fill(self, prefix: _Prefix, means: FloatArray, by_chain: FloatArray) -> None:
        """Fill the rows of the prefix and its continuations; NaN once a chain left float64."""
        own = means[prefix.index]
        if prefix.node.row is not None:
            by_chain[prefix.node.row] = own
        is_finite = np.isfinite(own)
        is_number = prefix.primitive is not None and stacks.gives_scalar(prefix.primitive)
        for child in prefix.children:
            if is_number:
                assert child.primitive is not None
                made = stacks.apply(child.primitive, own.reshape(-1, 1, 1), 1.0)
                means[child.index] = made.reshape(-1)
            if not is_finite.all():
                means[child.index, ~is_finite] = np.nan
            self._fill(child, means, by_chain)


class _Stack:
    """The prefixes of one stack; see `ChainValues.compute`."""

    def __init__(
        self,
        owner: ChainValues,
        basis: FloatArray,
        combination: Combination,
        column_scale: Sequence[float],
        size: int,
    ) -> None:
        self.owner, self.basis, self.combination = owner, basis, combination
        self.column_scale, self.size = column_scale, size
        self.sums = np.zeros((owner.n_prefixes, len(column_scale)))
        self.means = np.zeros((owner.n_prefixes, len(column_scale)))
        self.is_multiplied = basis.shape[1] > 0

    def record_sum(self, prefix: _Prefix, values: FloatArray) -> None:
        np.add.reduce(values.reshape(len(values), -1), axis=1, out=self.sums[prefix.index])

    def _sum(self, prefix: _Prefix) -> FloatArray:
        return np.asarray(self.sums[prefix.index].reshape(-1, 1, 1))

    def enter(self, prefix: _Prefix, values: FloatArray, depth: int) -> None:
        """Compute what continues a prefix, whose values are at hand."""
        centred = None
        if self.is_multiplied:
            if prefix.centred >= 0:
                centred = self.basis[:, prefix.centred]
            if prefix.own >= 0 and not depth:
                self.basis[:, prefix.own] = values
        if depth + 1 == len(self.owner.buffers):
            self.owner.buffers.append(Buffers())
        buffers = self.owner.buffers[depth + 1]
        operand = Operand(values, self._sum(prefix), buffers, centred)
        for child in prefix.matrices:
            if self.is_multiplied and child.own >= 0:
                out = self.basis[:, child.own]
            elif child.mean is not None:
                self.means[child.index] = child.mean(operand).reshape(-1)
                continue
            else:
                out = buffers.get("result", values.shape)
            self._write(child, operand, out)
            self.record_sum(child, out)
            if child.write is Operand.square:
                operand.sum_of_squares = self._sum(child)
            elif child.write is Operand.abs:
                operand.sum_of_absolutes = self._sum(child)
            if child.matrices or child.numbers:
                self.enter(child, out, depth + 1)
        for child in prefix.numbers:
            self.means[child.index] = self._number(child, operand)
        if centred is not None:
            self._combine(prefix, operand)
        column = self.owner.basis.columns.get(id(prefix.node))
        if self.is_multiplied and column is not None:
            self.combination.columns[:, column] = operand.log_power_sums

    def _combine(self, prefix: _Prefix, operand: Operand) -> None:
        """State the prefix, its zscore and its minmax by its centred matrix, which is computed."""
        centred, row = operand.centred, prefix.node.matrix_row
        assert centred is not None
        source = self.combination.basis.source
        if row is not None and source[row, 0] == prefix.centred:
            self.combination.offset[:, row] = operand.mean.reshape(-1)
        for continued in affine_continuations(prefix.node):
            row = continued.node.matrix_row
            if source[row, 0] != prefix.centred:
                continue
            sign = -1.0 if continued.is_negated else 1.0
            is_zscore = continued.name == "zscore"
            spread = operand.zscore_spread if is_zscore else operand.minmax_spread
            self.combination.scale[:, row, 0] = sign / spread.reshape(-1)
            if not is_zscore:
                least = operand.high if continued.is_negated else operand.low
                offset = sign * (operand.mean - least) / spread
                self.combination.offset[:, row] = offset.reshape(-1)

    def _write(self, prefix: _Prefix, operand: Operand, out: FloatArray) -> None:
        assert prefix.primitive is not None
        if prefix.write is not None:
            prefix.write(operand, out)
            return
        for index, column_scale in enumerate(self.column_scale):
            matrix = operand.values[index : index + 1]
            out[index] = stacks.apply(prefix.primitive, matrix, column_scale)[0]

    def _number(self, prefix: _Prefix, operand: Operand) -> FloatArray:
        """The primitive's numbers (k,), rescaled to the true number of columns."""
        assert prefix.primitive is not None
        kernel, grows = number_kernel(prefix.primitive), prefix.primitive.traits.grows
        if kernel is not None:
            numbers = kernel(operand).reshape(-1)
            return numbers * np.array([s**grows for s in self.column_scale]) if grows else numbers
        return np.array(
            [
                stacks.apply(prefix.primitive, matrix[np.newaxis], column_scale).item()
                for matrix, column_scale in zip(operand.values, self.column_scale, strict=True)
            ]
        )

    def spoil(self, prefix: _Prefix, is_bad: BoolArray) -> None:
        """Make the products NaN of every chain that left float64, here or before."""
        is_bad = is_bad | ~np.isfinite(self.means[prefix.index])
        for row in (prefix.own, prefix.centred):
            if row >= 0 and self.is_multiplied:
                self.basis[is_bad, row] = np.nan
        if prefix.node.matrix_row is not None:
            self.combination.scale[is_bad, prefix.node.matrix_row] = np.nan
        for child in prefix.matrices:
            self.spoil(child, is_bad)
