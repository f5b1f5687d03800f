"""The tensors of sketches gathered into stacks of one shape, whatever they are tensors of.

Aligned statistics whose products are tabulated (W with G) are gathered together. All others, blocks
and ends alike, share stacks with every statistic that has the same chains, so that stacks are few
and long.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lpzero.arrays import FloatArray
from lpzero.scores.chains import ChainSet
from lpzero.scores.pieces import groups
from lpzero.sketches.sketch import Sketch, SketchError, end_statistics

# Elements of a stack: more of them make Python's share smaller, and buffers leave the cache.
_ALONE, _MULTIPLIED = 1 << 17, 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """One tensor: its sketch, its statistic and place there, its numbers (rows, kept).

    sketch: its number among those that are tabulated together.
    """

    sketch: int
    statistic: str
    position: int | str
    index: int
    numbers: npt.NDArray[np.float32]
    true_columns: int

    @property
    def column_scale(self) -> float:
        """True over kept columns."""
        return self.true_columns / int(self.numbers.shape[1])

    def identity(self) -> Hashable:
        """What the values of its chains depend on; the numbers as a digest."""
        digest = hashlib.blake2b(self.numbers.tobytes(), digest_size=16).digest()
        return digest, self.numbers.shape, self.true_columns


Shapes = tuple[tuple[int, ...], ...]
Aligned = tuple[Tensor, ...]  # one tensor of each statistic of a group, or one alone


@dataclass(frozen=True, slots=True, eq=False)
class Lane:
    """The tensors of one statistic of a stack, and those that are `distinct`.

    places: for each tensor, which of the distinct ones it is equal to.
    """

    tensors: Sequence[Tensor]
    distinct: Sequence[Tensor]
    places: Sequence[int]

    @classmethod
    def of(cls, tensors: Sequence[Tensor]) -> Lane:
        if len({tensor.sketch for tensor in tensors}) == 1:
            return cls(tensors, tensors, range(len(tensors)))
        found: dict[Hashable, int] = {}
        distinct: list[Tensor] = []
        places: list[int] = []
        for tensor in tensors:
            place = found.setdefault(tensor.identity(), len(found))
            places.append(place)
            if place == len(distinct):
                distinct.append(tensor)
        return cls(tensors, distinct, places)


@dataclass(frozen=True, slots=True, eq=False)
class TensorStack:
    """Tensors of one shape and of equal chains; `is_multiplied`: products of them are needed."""

    tensors: list[Aligned]
    is_multiplied: bool

    def lanes(self) -> list[Lane]:
        """The tensors of each statistic of an aligned group."""
        return [Lane.of(tensors) for tensors in zip(*self.tensors, strict=True)]


def stacks_of(
    sketches: Sequence[Sketch], chains: ChainSet, is_known: Callable[[Tensor], bool]
) -> Iterator[TensorStack]:
    """Every tensor of the sketches once, but for those that are known and not multiplied.

    The tensors of a sketch that are multiplied come in an order that does not depend on the other
    sketches; equal weights are neighbours, because they have the same place in their networks.
    """
    found: dict[tuple[bool, Shapes, object], list[Aligned]] = {}
    for number, sketch in enumerate(sketches):
        for is_multiplied, aligned in _tensors(number, sketch, chains):
            if not is_multiplied and is_known(aligned[0]):
                continue
            shapes = tuple(tensor.numbers.shape for tensor in aligned)
            of_each = tuple(chains.chains[tensor.statistic] for tensor in aligned)
            found.setdefault((is_multiplied, shapes, of_each), []).append(aligned)
    for key in sorted(found, key=lambda key: key[:2]):
        alike, is_multiplied = found[key], key[0]
        if is_multiplied:
            alike.sort(key=lambda aligned: (aligned[0].position, aligned[0].index))
        most = _MULTIPLIED if is_multiplied else _ALONE
        step = max(1, most // max(tensor.numbers.size for tensor in alike[0]))
        for start in range(0, len(alike), step):
            yield TensorStack(alike[start : start + step], is_multiplied)


def numbers_of(tensors: Sequence[Tensor]) -> FloatArray:
    """The tensors' numbers (k, rows, kept) in float64."""
    return np.stack([tensor.numbers for tensor in tensors]).astype(np.float64)


def _tensors(number: int, sketch: Sketch, chains: ChainSet) -> Iterator[tuple[bool, Aligned]]:
    """Each tensor of a sketch, whose number is given, and whether it is multiplied."""
    paired = {name for pair in chains.pairs for name in pair}
    for statistics in groups().values():
        is_multiplied = not paired.isdisjoint(statistics)
        for block in range(sketch.n_blocks):
            if is_multiplied:
                aligned = _aligned(number, sketch, block, statistics)
            else:
                aligned = (t for name in statistics for t in _alone(number, sketch, block, name))
            yield from ((is_multiplied, tensors) for tensors in aligned)
    for end in sketch.ends:
        for name in end_statistics():
            yield from ((False, tensors) for tensors in _alone(number, sketch, end, name))


def _aligned(
    number: int, sketch: Sketch, block: int, statistics: Sequence[str]
) -> Iterator[Aligned]:
    found = [sketch.tensors(block, name) for name in statistics]
    if len({len(tensors) for tensors in found}) != 1:
        names = " and ".join(statistics)
        raise SketchError(f"{names} of block {block} have different numbers of tensors")
    for index, parts in enumerate(zip(*found, strict=True)):
        yield tuple(
            Tensor(number, name, block, index, *part)
            for name, part in zip(statistics, parts, strict=True)
        )


def _alone(number: int, sketch: Sketch, position: int | str, name: str) -> Iterator[Aligned]:
    for index, part in enumerate(sketch.tensors(position, name)):
        yield (Tensor(number, name, position, index, *part),)
