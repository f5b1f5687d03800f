"""A sketch's tensors gathered into stacks of one shape, whatever they are tensors of.

Aligned statistics whose products are tabulated (W with G) are gathered together. All others, blocks
and ends alike, share stacks with every statistic that has the same chains, so that stacks are few
and long. A stack is small enough for the cache of a processor core.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lpzero.arrays import FloatArray
from lpzero.scores.chains import ChainSet
from lpzero.scores.pieces import groups
from lpzero.sketches.sketch import Sketch, SketchError, end_statistics

ELEMENTS = 1 << 15  # of a stack


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """One tensor: its statistic, where it is, its numbers (rows, kept) and its true width."""

    statistic: str
    position: int | str
    index: int
    numbers: npt.NDArray[np.float32]
    true_columns: int

    @property
    def stretch(self) -> float:
        """True over kept columns."""
        return self.true_columns / int(self.numbers.shape[1])


Aligned = tuple[Tensor, ...]  # one tensor of each statistic of a group, or one alone


@dataclass(frozen=True, slots=True, eq=False)
class TensorStack:
    """Tensors of one shape and of equal chains; `is_multiplied`: products of them are needed."""

    tensors: list[Aligned]
    is_multiplied: bool

    def lanes(self) -> list[tuple[Tensor, ...]]:
        """The tensors of each statistic of an aligned group."""
        return list(zip(*self.tensors, strict=True))


def stacks_of(sketch: Sketch, chains: ChainSet) -> Iterator[TensorStack]:
    """Every tensor of the sketch once."""
    found: dict[tuple[bool, object], list[Aligned]] = {}
    for is_multiplied, aligned in _tensors(sketch, chains):
        shapes = tuple((t.numbers.shape, chains.chains[t.statistic]) for t in aligned)
        found.setdefault((is_multiplied, shapes), []).append(aligned)
    for (is_multiplied, _), alike in found.items():
        step = max(1, ELEMENTS // max(tensor.numbers.size for tensor in alike[0]))
        for start in range(0, len(alike), step):
            yield TensorStack(alike[start : start + step], is_multiplied)


def numbers_of(tensors: Sequence[Tensor]) -> FloatArray:
    """The tensors' numbers (k, rows, kept) in float64."""
    return np.stack([tensor.numbers for tensor in tensors]).astype(np.float64)


def _tensors(sketch: Sketch, chains: ChainSet) -> Iterator[tuple[bool, Aligned]]:
    paired = {name for pair in chains.pairs for name in pair}
    for statistics in groups().values():
        is_multiplied = not paired.isdisjoint(statistics)
        for block in range(sketch.n_blocks):
            if is_multiplied:
                aligned = _aligned(sketch, block, statistics)
            else:
                aligned = (each for name in statistics for each in _alone(sketch, block, name))
            yield from ((is_multiplied, tensors) for tensors in aligned)
    for end in sketch.ends:
        for name in end_statistics():
            yield from ((False, tensors) for tensors in _alone(sketch, end, name))


def _aligned(sketch: Sketch, block: int, statistics: Sequence[str]) -> Iterator[Aligned]:
    found = [sketch.tensors(block, name) for name in statistics]
    if len({len(tensors) for tensors in found}) != 1:
        names = " and ".join(statistics)
        raise SketchError(f"{names} of block {block} have different numbers of tensors")
    for index, parts in enumerate(zip(*found, strict=True)):
        yield tuple(
            Tensor(name, block, index, *part) for name, part in zip(statistics, parts, strict=True)
        )


def _alone(sketch: Sketch, position: int | str, name: str) -> Iterator[Aligned]:
    for index, part in enumerate(sketch.tensors(position, name)):
        yield (Tensor(name, position, index, *part),)
