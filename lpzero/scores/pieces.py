"""Tensors of many sketches gathered into stacks of one shape.

Aligned statistics (W with G) are gathered together, so that a piece has all of them for each
tensor. A piece is small enough for the cache of a processor core.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lpzero.arrays import FloatArray
from lpzero.sketches.sketch import Sketch, SketchError
from primitives.statistics import STATISTICS

ELEMENTS = 1 << 14  # per statistic of a piece
Shape = tuple[int, int, int]  # rows, kept columns, true columns
Place = tuple[int, int, int]  # architecture, block, tensor


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """A stack (k, rows, kept) in float32 and the true width per statistic; k places."""

    stacks: dict[str, npt.NDArray[np.float32]]
    true_columns: dict[str, int]
    places: npt.NDArray[np.intp]  # (3, k)

    def values(self, statistic: str) -> FloatArray:
        """The statistic's stack (k, rows, kept) in float64."""
        return self.stacks[statistic].astype(np.float64)

    def column_scale(self, statistic: str) -> float:
        """True over kept columns."""
        return self.true_columns[statistic] / int(self.stacks[statistic].shape[2])


def groups() -> dict[str, tuple[str, ...]]:
    """The statistics of each alignment group, in their declared order."""
    found: dict[str, tuple[str, ...]] = {}
    for name, statistic in STATISTICS.items():
        found[statistic.group] = (*found.get(statistic.group, ()), name)
    return found


def gather(
    sketches: Iterable[Sketch], statistics: Sequence[str], elements: int = ELEMENTS
) -> list[Piece]:
    """The tensors of aligned statistics as pieces, shapes in order of first appearance.

    Every sketch is read once, and none is in memory longer than its turn.
    """
    by_shape: dict[tuple[Shape, ...], _Pieces] = {}
    for arch, sketch in enumerate(sketches):
        for place, shapes, numbers in _tensors(arch, sketch, statistics):
            found = by_shape.get(shapes)
            if found is None:
                found = by_shape[shapes] = _Pieces(statistics, shapes, elements)
            found.add(place, numbers)
    return [piece for found in by_shape.values() for piece in found.finish()]


class _Pieces:
    """The pieces of tensors of one shape; numbers are copied when they are added."""

    def __init__(self, statistics: Sequence[str], shapes: tuple[Shape, ...], elements: int) -> None:
        self._statistics, self._shapes = statistics, shapes
        self._most = max(1, elements // max(rows * kept for rows, kept, _ in shapes))
        self._done: list[Piece] = []
        self._begin()

    def _begin(self) -> None:
        self._places: list[Place] = []
        self._stacks = [
            np.empty((self._most, rows, kept), np.float32) for rows, kept, _ in self._shapes
        ]

    def add(self, place: Place, numbers: Sequence[npt.NDArray[np.float32]]) -> None:
        """Add a tensor of each statistic."""
        if len(self._places) == self._most:
            self._done.append(self._piece())
            self._begin()
        for stack, values in zip(self._stacks, numbers, strict=True):
            stack[len(self._places)] = values
        self._places.append(place)

    def finish(self) -> list[Piece]:
        """Every piece; the last one is as long as it has tensors."""
        n = len(self._places)
        if n < self._most:
            self._stacks = [stack[:n].copy() for stack in self._stacks]
        return [*self._done, self._piece()]

    def _piece(self) -> Piece:
        names = self._statistics
        true = {name: shape[2] for name, shape in zip(names, self._shapes, strict=True)}
        places = np.array(self._places, dtype=np.intp).T
        return Piece(dict(zip(names, self._stacks, strict=True)), true, places)


def _tensors(
    arch: int, sketch: Sketch, statistics: Sequence[str]
) -> Iterator[tuple[Place, tuple[Shape, ...], list[npt.NDArray[np.float32]]]]:
    """Each tensor's place, shapes and numbers, one of each statistic."""
    for block in range(sketch.n_blocks):
        found = [sketch.tensors(block, name) for name in statistics]
        if len({len(tensors) for tensors in found}) != 1:
            names = " and ".join(statistics)
            raise SketchError(f"{names} of block {block} have different numbers of tensors")
        for tensor, parts in enumerate(zip(*found, strict=True)):
            shapes = tuple((*values.shape, true) for values, true in parts)
            yield (arch, block, tensor), shapes, [values for values, _ in parts]
