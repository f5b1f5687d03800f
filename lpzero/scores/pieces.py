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
_Found = tuple[Place, list[npt.NDArray[np.float32]]]


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """A stack (k, rows, kept) in float32 and the true width per statistic; k places."""

    stacks: dict[str, npt.NDArray[np.float32]]
    true_columns: dict[str, int]
    places: npt.NDArray[np.intp]  # (3, k)

    def values(self, statistic: str) -> FloatArray:
        """The statistic's stack (k, rows, kept) in float64."""
        return self.stacks[statistic].astype(np.float64)

    def stretch(self, statistic: str) -> float:
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
    """The tensors of aligned statistics as pieces, shapes in order of first appearance."""
    return gather_all(sketches, [statistics], elements)[0]


def gather_all(
    sketches: Iterable[Sketch], groups: Sequence[Sequence[str]], elements: int = ELEMENTS
) -> list[list[Piece]]:
    """The pieces of each group of aligned statistics; every sketch is read once."""
    by_shape: list[dict[tuple[Shape, ...], list[_Found]]] = [{} for _ in groups]
    for arch, sketch in enumerate(sketches):
        for statistics, found in zip(groups, by_shape, strict=True):
            for place, shapes, parts in _tensors(arch, sketch, statistics):
                found.setdefault(shapes, []).append((place, parts))
    return [
        list(_pieces(statistics, found, elements))
        for statistics, found in zip(groups, by_shape, strict=True)
    ]


def _pieces(
    statistics: Sequence[str], by_shape: dict[tuple[Shape, ...], list[_Found]], elements: int
) -> Iterator[Piece]:
    for shapes in list(by_shape):
        found = by_shape.pop(shapes)  # a piece is a copy: what it was made from is released
        step = max(1, elements // max(rows * kept for rows, kept, _ in shapes))
        for start in range(0, len(found), step):
            yield _piece(statistics, shapes, found[start : start + step])


def _piece(
    statistics: Sequence[str],
    shapes: tuple[Shape, ...],
    found: list[_Found],
) -> Piece:
    stacks = {
        name: np.stack([parts[i] for _, parts in found]).reshape(-1, *shapes[i][:2])
        for i, name in enumerate(statistics)
    }
    true = {name: shape[2] for name, shape in zip(statistics, shapes, strict=True)}
    return Piece(stacks, true, np.array([place for place, _ in found], dtype=np.intp).T)


def _tensors(
    arch: int, sketch: Sketch, statistics: Sequence[str]
) -> Iterator[tuple[Place, tuple[Shape, ...], list[npt.NDArray[np.float32]]]]:
    """Each tensor's place, shapes and numbers, one of each statistic."""
    start = 0
    for block in range(sketch.n_blocks):
        found: dict[str, list[tuple[Shape, npt.NDArray[np.float32]]]] = {}
        for name in STATISTICS:
            found[name] = []
            for shape in sketch.shapes(block, name):
                end = start + shape[0] * shape[1]
                found[name].append((shape, sketch.numbers[start:end]))
                start = end
        counts = {len(found[name]) for name in statistics}
        if len(counts) != 1:
            names = " and ".join(statistics)
            raise SketchError(f"{names} of block {block} have different numbers of tensors")
        for tensor, parts in enumerate(zip(*(found[name] for name in statistics), strict=True)):
            yield (
                (arch, block, tensor),
                tuple(shape for shape, _ in parts),
                [numbers for _, numbers in parts],
            )
