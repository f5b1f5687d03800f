"""What the terms and columns of a formula are computed from: networks, sizes, other proxies."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.proxies.base import Proxy, Terms
from lpzero.statistics.definitions import OURS
from primitives import network as formulas
from primitives.errors import TensorError
from primitives.formula import Formula, Term
from primitives.naive import block_values, score
from primitives.network import number
from primitives.rejection import Rejected
from primitives.tensors import Matrix
from spaces.base import EMBEDDING, HEAD, Space

if TYPE_CHECKING:
    from lpzero.proxies.measurements import Measurements
    from lpzero.proxies.network import Network
    from lpzero.statistics.extraction import PositionStatistics


def column_values(
    columns: Mapping[str, Proxy],
    space: Space[Any],
    archs: Sequence[Any],
    measurements: Measurements,
) -> dict[str, FloatArray]:
    """The scores (n,) of the architectures under each proxy."""
    return {name: proxy.score(space, archs, measurements) for name, proxy in columns.items()}


def size_network(space: Space[Any], arch: Any) -> formulas.NetworkValues:
    """The architecture as a network that has sizes and no statistics."""
    blocks = [_sizes(of) for of in space.block_sizes(arch)]
    ends = {end: _sizes(of) for end, of in space.end_sizes(arch).items()}
    return formulas.NetworkValues(blocks, ends.get(EMBEDDING), ends.get(HEAD))


@dataclass(frozen=True, slots=True)
class BlockValues:
    """A measure: the formula's value on each block, on tensors cut as in sketches."""

    formula: Formula
    limit: int | None
    definitions: str = OURS

    def __call__(self, network: Network) -> Terms:
        found = _positions(network, self.formula, self.limit, False, self.definitions)
        blocks = found.blocks
        values = block_values(self.formula.term.expression, blocks)
        if isinstance(values, Rejected):
            return [[np.nan] for _ in blocks]
        return [[value] for value in values]


@dataclass(frozen=True, slots=True)
class TermValues:
    """A measure: the value of each of the formula's terms, in their order."""

    formula: Formula
    limit: int | None
    definitions: str = OURS

    def __call__(self, network: Network) -> Terms:
        with_ends = any(term.positions.end is not None for term in self.formula.terms)
        positions = _positions(network, self.formula, self.limit, with_ends, self.definitions)
        return [[self._value(term, positions)] for term in self.formula.terms]

    def _value(self, term: Term, positions: formulas.NetworkValues) -> float:
        try:
            found = score(Formula.of_base(term), positions)
        except TensorError:  # a position has not what the term reads there: the head of an encoder
            return math.nan
        return math.nan if isinstance(found, Rejected) else found


def _positions(
    network: Network, formula: Formula, limit: int | None, with_ends: bool, definitions: str
) -> formulas.NetworkValues:
    """The formula's statistics of a network, which runs once, and its sizes if they are known."""
    from lpzero.statistics.extraction import extract  # imports torch

    found = extract(
        network.model,
        network.tokens,
        loss=network.loss,
        seed=network.seed,
        chunk=network.chunk,
        limit=limit,
        with_ends=with_ends,
        layout=network.layout if network.has_layout else None,
        names=formula.statistics,
        definitions=definitions,
    )
    sizes = network.sizes or {"blocks": [{}] * len(found.blocks), "ends": {}}
    pairs = zip(found.blocks, sizes["blocks"], strict=True)
    blocks = [_matrices(block) | _sizes(of) for block, of in pairs]
    ends = {
        end: _matrices(of) | _sizes(sizes["ends"].get(end, {})) for end, of in found.ends.items()
    }
    return formulas.NetworkValues(blocks, ends.get(EMBEDDING), ends.get(HEAD))


def _matrices(position: PositionStatistics) -> dict[str, list[Matrix]]:
    return {
        name: [
            Matrix(piece.values.float().cpu().numpy().astype(np.float64), piece.true_columns)
            for piece in pieces
        ]
        for name, pieces in position.items()
    }


def _sizes(sizes: Mapping[str, float]) -> dict[str, list[Matrix]]:
    return {name: number(value) for name, value in sizes.items()}
