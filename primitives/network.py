"""A network as formulas see it: its blocks in order and, where it has them, its two ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from primitives.errors import TensorError
from primitives.reductions import POSITION_REDUCTIONS, Reduction
from primitives.tensors import Array, Matrix, namespace

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
