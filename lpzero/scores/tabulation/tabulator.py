"""One sketch -> means of every branch per tensor, and products of aligned chain pairs.

A formula ends in a mean. If the rows of F and G are all chains of a tensor, mean(f(X) * g(Y)) for
all pairs is F·Gᵀ / N, and mean(f(X)·g(Y)) is colmean(F)·rowmean(G). Everything is float64, because
chains range from 1e-18 to 1e43 and their products cancel.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from lpzero.arrays import FloatArray
from lpzero.scores.chains import ChainSet, Pair
from lpzero.scores.stacks import Aligned, Tensor, aligned_tensors, gather, groups, tensors_at
from lpzero.scores.tabulation.chain_values import ChainValues, Computed
from lpzero.sketches.sketch import Sketch, end_statistics
from primitives.tensors import kept_columns

PRODUCTS = ("mul", "matmul")
# Elements of a stack: more of them make Python's share smaller, and buffers leave the cache.
_ALONE, _MULTIPLIED = 1 << 17, 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class Tabulated:
    """One architecture's part of a branch table.

    counts: tensors per block (B,) of each statistic. means: (chains, B, T), zero beyond a block's
    tensors, NaN where a chain overflowed. products: (mul and matmul, left chains,
    right chains) of each pair, the mean over each block's tensors summed over blocks.
    ends: (chains,) of each (end, statistic) the sketch has, the mean over the end's tensors; sizes:
    as the sketch states them.
    """

    counts: dict[str, tuple[int, ...]]
    means: dict[str, FloatArray]
    products: dict[Pair, FloatArray]
    ends: dict[tuple[str, str], FloatArray] = field(default_factory=dict)
    sizes: Mapping[str, Any] | None = None


def tabulate(sketches: Sequence[Sketch], chains: ChainSet) -> list[Tabulated]:
    """The branch table of each sketch; what their networks have in common is computed once.

    A table has the same bits whatever it is computed with. Single-threaded, so that the order of
    sums is fixed.
    """
    tables = [_empty(sketch, chains) for sketch in sketches]
    at_ends: list[dict[tuple[str, str], dict[int, FloatArray]]] = [{} for _ in sketches]
    values = _Values(chains)
    with threadpool_limits(1, "blas"), np.errstate(all="ignore"):
        for tensors in _alone(sketches, chains, values.look_up):
            values.compute(0, _Distinct.of([tensor for (tensor,) in tensors]), False)
        for tensors in _multiplied(sketches, chains):
            stacks = [_Distinct.of(alike) for alike in zip(*tensors, strict=True)]
            computed = [values.compute(i, stack, True) for i, stack in enumerate(stacks)]
            factors = [[_Factors(side, at) for at in range(len(side.basis))] for side in computed]
            for at, aligned in enumerate(tensors):
                places = [stack.places[at] for stack in stacks]
                chosen = [some[place] for some, place in zip(factors, places, strict=True)]
                _add_products(tables[aligned[0].row], aligned, chosen)
        for tensor, chain_means in values.means():
            if isinstance(tensor.position, str):
                of_sketch = at_ends[tensor.row]
                of_end = of_sketch.setdefault((tensor.position, tensor.statistic), {})
                of_end[tensor.index] = chain_means
            else:
                means = tables[tensor.row].means[tensor.statistic]
                means[:, tensor.position, tensor.index] = chain_means
    for sketch, table, of_sketch in zip(sketches, tables, at_ends, strict=True):
        for end in sketch.ends:
            for name in chains.chains:
                if (end, name) in of_sketch:
                    table.ends[end, name] = _over_tensors(of_sketch[end, name])
    return tables


def _alone(
    sketches: Sequence[Sketch], chains: ChainSet, is_known: Callable[[Tensor], bool]
) -> Iterator[Sequence[Aligned]]:
    """The tensors that are not multiplied, at blocks and ends, but for those whose means are known.

    Statistics of equal chains share stacks, so that these are few and long.
    """
    single = [
        name for group in groups().values() if not _is_paired(group, chains) for name in group
    ]
    tensors = (
        (tensor,)
        for row, sketch in enumerate(sketches)
        for names, positions in ((single, range(sketch.n_blocks)), (end_statistics(), sketch.ends))
        for position in positions
        for name in names
        for tensor in tensors_at(row, sketch, position, name)
        if not is_known(tensor)
    )
    return gather(tensors, _ALONE, lambda tensor: chains.chains[tensor.statistic])


def _multiplied(sketches: Sequence[Sketch], chains: ChainSet) -> Iterator[Sequence[Aligned]]:
    """The aligned tensors that are multiplied.

    Those of a sketch come in an order that does not depend on the other sketches; equal weights are
    neighbours, because they have the same place in their networks.
    """
    for statistics in groups().values():
        if not _is_paired(statistics, chains):
            continue
        tensors = [
            aligned
            for row, sketch in enumerate(sketches)
            for aligned in aligned_tensors(row, sketch, statistics)
        ]
        tensors.sort(
            key=lambda aligned: (
                [tensor.matrix.values.shape for tensor in aligned],
                aligned[0].position,
                aligned[0].index,
            )
        )
        yield from gather(tensors, _MULTIPLIED, lambda tensor: None)


def _is_paired(statistics: Sequence[str], chains: ChainSet) -> bool:
    return any(name in pair for pair in chains.pairs for name in statistics)


@dataclass(frozen=True, slots=True, eq=False)
class _Distinct:
    """Tensors of one statistic and shape, and those of them that are `distinct`.

    places: for each tensor, which of the distinct ones it is equal to.
    """

    tensors: Sequence[Tensor]
    distinct: Sequence[Tensor]
    places: Sequence[int]

    @classmethod
    def of(cls, tensors: Sequence[Tensor]) -> _Distinct:
        if len({tensor.row for tensor in tensors}) == 1:
            return cls(tensors, tensors, range(len(tensors)))
        place_of: dict[Hashable, int] = {}
        distinct: list[Tensor] = []
        places: list[int] = []
        for tensor in tensors:
            place = place_of.setdefault(tensor.identity(), len(place_of))
            places.append(place)
            if place == len(distinct):
                distinct.append(tensor)
        return cls(tensors, distinct, places)


def _empty(sketch: Sketch, chains: ChainSet) -> Tabulated:
    """A table of zeros."""
    counts = {
        name: tuple(len(sketch.shapes(b, name)) for b in range(sketch.n_blocks))
        for name in chains.chains
    }
    means = {
        name: np.zeros((len(rows), sketch.n_blocks, max(counts[name])))
        for name, rows in chains.chains.items()
    }
    products = {
        pair: np.zeros((2, chains.n_matrices[pair[0]], chains.n_matrices[pair[1]]))
        for pair in chains.pairs
    }
    return Tabulated(counts, means, products, {}, sketch.sizes)


def _over_tensors(means: Mapping[int, FloatArray]) -> FloatArray:
    """The mean of each chain (chains,) over an end's tensors, NaN where a chain left float64."""
    total = sum((means[index] for index in sorted(means)), start=np.zeros(()))
    return np.where(np.isfinite(total), total / len(means), np.nan)


class _Values:
    """The chains of a sketch's tensors.

    Networks of one seed share weights, activations of their first blocks and the gradient at their
    end, so the means of tensors that are not multiplied are remembered from sketch to sketch.
    """

    def __init__(self, chains: ChainSet) -> None:
        self.chains = chains
        self._computed: dict[ChainValues, list[tuple[Sequence[Tensor], FloatArray]]] = {}
        self._looked_up: list[tuple[Tensor, FloatArray]] = []
        self._to_remember: dict[Tensor, Hashable] = {}

    def look_up(self, tensor: Tensor) -> bool:
        """Whether the tensor's means are known from an equal one; then they need no computing."""
        identity = tensor.identity()
        means = _computer(self.chains, tensor.statistic, 0).remembered_means.get(identity)
        if means is None:
            self._to_remember[tensor] = identity
            return False
        self._looked_up.append((tensor, means))
        return True

    def compute(self, side: int, stack: _Distinct, is_multiplied: bool) -> Computed:
        """The chains of the distinct tensors; the sides of a product do not share buffers."""
        computer = _computer(self.chains, stack.tensors[0].statistic, side)
        matrices = [tensor.matrix for tensor in stack.distinct]
        numbers = np.stack([matrix.values for matrix in matrices]).astype(np.float64)
        column_scales = [matrix.column_scale for matrix in matrices]
        made = computer.compute(numbers, column_scales, is_multiplied)
        self._computed.setdefault(computer, []).append((stack.tensors, made.means[:, stack.places]))
        return made

    def means(self) -> Iterator[tuple[Tensor, FloatArray]]:
        """Each tensor with the mean of each chain (chains,)."""
        yield from self._looked_up
        for computer, parts in self._computed.items():
            tensors = [tensor for some, _ in parts for tensor in some]
            n_chains = len(self.chains.chains[tensors[0].statistic])
            computed = np.concatenate([means for _, means in parts], axis=1)
            all_means = computer.chain_means(computed, n_chains).T
            for tensor, means in zip(tensors, all_means, strict=True):
                if tensor in self._to_remember:
                    identity = self._to_remember[tensor]
                    computer.remembered_means.put(identity, means.copy(), means.nbytes)
                yield tensor, means


_of_thread = threading.local()  # buffers are not shared, and cleared pages are expensive


def _computer(chains: ChainSet, statistic: str, side: int) -> ChainValues:
    """The computation of the statistic's chains, the same one for statistics of equal chains."""
    if getattr(_of_thread, "chains", None) is not chains:
        _of_thread.chains, _of_thread.computers = chains, {}
    computers: dict[object, ChainValues] = _of_thread.computers
    key = side, chains.chains[statistic]
    if key not in computers:
        tree, n_matrices = chains.trees[statistic], chains.n_matrices[statistic]
        computers[key] = ChainValues(tree, n_matrices)
    return computers[key]


def _add_products(table: Tabulated, aligned: Aligned, factors: Sequence[_Factors]) -> None:
    """Add the products of aligned tensors, of each its factors, by their share of the block."""
    side_of = {tensor.statistic: side for side, tensor in enumerate(aligned)}
    for pair, total in table.products.items():
        if not side_of.keys() >= set(pair):
            continue
        left, right = (side_of[name] for name in pair)
        widths = aligned[left].matrix.true_columns, aligned[right].matrix.true_columns
        product = _products(factors[left], factors[right], *widths)
        product = factors[left].combine(product)
        product = factors[right].combine(product.swapaxes(1, 2)).swapaxes(1, 2)
        block = aligned[left].position
        assert isinstance(block, int)
        total += product / table.counts[pair[0]][block]


class _Factors:
    """What is multiplied of one tensor: n matrices (n, rows, kept), m rows of numbers, and ones.

    Means of all of them: column_means (n + m + 1, kept), row_means (n + m + 1, rows), means.
    """

    def __init__(self, computed: Computed, at: int) -> None:
        self.matrices = computed.basis[at]
        self._combination, self._at = computed.combination, at

    @cached_property
    def column_means(self) -> FloatArray:
        rows, kept = self.matrices.shape[1:]
        means = np.matmul(np.ones((1, rows)), self.matrices)[:, 0] / rows
        return np.concatenate([means, self._combination.columns[self._at], np.ones((1, kept))])

    @cached_property
    def means(self) -> FloatArray:
        return np.asarray(self.column_means.mean(axis=1))

    @cached_property
    def row_means(self) -> FloatArray:
        """All rows of a row of numbers are alike."""
        n, rows, kept = self.matrices.shape
        means = np.empty((len(self.column_means), rows))
        np.divide(np.matmul(self.matrices, np.ones(kept)), kept, out=means[:n])
        means[n:] = self.means[n:, np.newaxis]
        return means

    def combine(self, products: FloatArray) -> FloatArray:
        """The products (..., chains, any) of the chains from those of the factors."""
        return self._combination.of_rows(self._at, products)


def _products(left: _Factors, right: _Factors, inner: int, width: int) -> FloatArray:
    """Means of mul and matmul (2, left, right) of all factors of two tensors.

    `inner` and `width` are their true columns.
    """
    (n, rows, kept), (n_right, other_rows, other_kept) = left.matrices.shape, right.matrices.shape
    of_means = np.outer(left.means, right.means)
    product = np.stack([of_means, of_means])
    if (rows, kept) == (other_rows, other_kept) and inner == width:
        flat = left.matrices.reshape(n, -1) @ right.matrices.reshape(n_right, -1).T
        product[0, :n, :n_right] = flat / (rows * kept)
        by_columns = left.column_means, right.column_means
        product[0, :, n_right:] = by_columns[0] @ by_columns[1][n_right:].T / kept
        product[0, n:, :n_right] = by_columns[0][n:] @ by_columns[1][:n_right].T / kept
    # Rows and columns are paired as in `primitives.naive`.
    if inner == other_rows:
        means = right.row_means
        chosen = means if kept == other_rows else means[:, kept_columns(inner, kept)]
        product[1] = left.column_means @ chosen.T * (inner / kept)
    elif inner == width and kept == other_kept:
        product[1] = left.column_means @ right.column_means.T * (inner / kept)
    return product
