"""The tensors of sketches, and those of one shape together.

Aligned statistics (W with G) are read together, tensor by tensor.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from lpzero.sketches.sketch import Sketch, SketchError
from primitives.statistics import STATISTICS
from primitives.tensors import Matrix


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """One tensor in float32 and its place: row of the sketch, statistic, block or end, index."""

    row: int
    statistic: str
    position: int | str
    index: int
    matrix: Matrix

    def identity(self) -> Hashable:
        """What the values of its chains depend on; the numbers as a digest."""
        values = self.matrix.values
        digest = hashlib.blake2b(values.tobytes(), digest_size=16).digest()
        return digest, values.shape, self.matrix.true_columns

    def copied(self) -> Tensor:
        """The tensor without its sketch, which need not stay in memory."""
        matrix = Matrix(self.matrix.values.copy(), self.matrix.true_columns)
        return replace(self, matrix=matrix)


Aligned = Sequence[Tensor]  # one tensor of each statistic of a group, or one alone


def groups() -> dict[str, tuple[str, ...]]:
    """The statistics of each alignment group, in their declared order."""
    found: dict[str, tuple[str, ...]] = {}
    for name, statistic in STATISTICS.items():
        found[statistic.group] = (*found.get(statistic.group, ()), name)
    return found


def tensors_at(row: int, sketch: Sketch, position: int | str, statistic: str) -> list[Tensor]:
    """The tensors of one statistic at a block or an end."""
    return [
        Tensor(row, statistic, position, index, matrix)
        for index, matrix in enumerate(sketch.stored_matrices(position, statistic))
    ]


def aligned_tensors(row: int, sketch: Sketch, statistics: Sequence[str]) -> Iterator[Aligned]:
    """The tensors of aligned statistics at every block, one of each statistic at a time."""
    for block in range(sketch.n_blocks):
        found = [tensors_at(row, sketch, block, name) for name in statistics]
        if len({len(tensors) for tensors in found}) != 1:
            names = " and ".join(statistics)
            raise SketchError(f"{names} of block {block} have different numbers of tensors")
        yield from zip(*found, strict=True)


def gather(
    tensors: Iterable[Aligned], elements: int, kind: Callable[[Tensor], Hashable]
) -> Iterator[Sequence[Aligned]]:
    """Tensors of one shape and kind together, at most `elements` numbers of a statistic.

    Shapes and kinds come in the order of their first tensor, their tensors in the order given.
    """
    found: dict[Hashable, list[Aligned]] = {}
    for aligned in tensors:
        key = tuple((one.matrix.values.shape, kind(one)) for one in aligned)
        found.setdefault(key, []).append(aligned)
    for alike in found.values():
        step = max(1, elements // max(one.matrix.values.size for one in alike[0]))
        while alike:
            yield alike[:step]
            del alike[:step]
