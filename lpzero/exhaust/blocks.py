"""The space cut into blocks of formulas, and each block measured by a worker.

Blocks are the same for any number of workers and any memory, so that a run may be stopped and
taken up again with other means.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from lpzero.exhaust.scoring import Scorer
from lpzero.exhaust.yardstick import MEASURES, Yardstick
from lpzero.ranks import BoolArray, FloatArray
from lpzero.store import Store
from primitives.enumeration import Family
from primitives.formula import REDUCTIONS

FORMULAS = 1 << 14  # per block and reduction
# Score vectors alive at once in a worker: the block, a reduction of it, and what ranking needs.
_COPIES = 3


@dataclass(frozen=True, slots=True)
class Block:
    """Left branches from start to stop of one family, with all its right ones."""

    family: int
    start: int
    stop: int


def cut(families: Sequence[Family]) -> list[Block]:
    """The blocks of the space, in the order of the families."""
    blocks = []
    for index, family in enumerate(families):
        step = max(1, FORMULAS // max(1, len(family.right)))
        for start in range(0, len(family.left), step):
            blocks.append(Block(index, start, min(start + step, len(family.left))))
    return blocks


def members(family: Family, block: Block) -> BoolArray:
    """Which (left, right) of the block are formulas: in an unordered family each pair once."""
    shape = block.stop - block.start, max(1, len(family.right))
    if not family.unordered:
        return np.ones(shape, dtype=np.bool_)
    first = 1 if family.operation == "sub" else 0
    left = np.arange(block.start, block.stop)[:, np.newaxis]
    return np.asarray(np.arange(shape[1]) >= left + first)


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """A measured block: values (measures, reductions, left, right), NaN where there is none."""

    values: FloatArray
    evaluated: int
    constant: int
    non_finite: int


@dataclass(frozen=True, eq=False)
class Measurer:
    """Runs in a worker: measures a block and writes it; `memory` in bytes bounds its arrays."""

    scorer: Scorer
    yardstick: Yardstick
    families: tuple[Family, ...]
    folder: Path
    memory: int

    def __call__(self, task: tuple[int, Block]) -> None:
        number, block = task
        write(self.folder, number, self.measure(block))

    def measure(self, block: Block) -> Counted:
        """The block's measures, its left branches a few at a time."""
        family = self.families[block.family]
        width = max(1, len(family.right))
        shape = len(MEASURES), len(REDUCTIONS), block.stop - block.start, width
        values = np.full(shape, np.nan)
        there = members(family, block)
        counts = np.zeros(2, dtype=np.int64)
        step = max(1, self.memory // (_COPIES * width * self.scorer.n_archs * 8))
        for start in range(block.start, block.stop, step):
            stop = min(start + step, block.stop)
            total = self.scorer.scores(family, start, stop)
            rows = slice(start - block.start, stop - block.start)
            for index, reduction in enumerate(REDUCTIONS):
                picked = total[there[rows]]
                if reduction == "mean":
                    picked /= self.scorer.n_blocks
                found = self.yardstick.measure(picked)
                values[:, index, rows][:, there[rows]] = found.values
                counts += [found.constant.sum(), found.non_finite.sum()]
        evaluated = int(there.sum()) * len(REDUCTIONS)
        return Counted(values, evaluated, int(counts[0]), int(counts[1]))


def path(folder: Path, number: int) -> Path:
    """Where the block of that number is or will be."""
    return folder / "blocks" / f"{number:05d}.npz"


def write(folder: Path, number: int, counted: Counted) -> None:
    """Write the block whole or not at all."""
    buffer = io.BytesIO()
    counts = np.array([counted.evaluated, counted.constant, counted.non_finite])
    np.savez(buffer, values=counted.values, counts=counts)
    Store(folder).replace(path(folder, number), buffer.getvalue())


def read(folder: Path, number: int) -> Counted | None:
    """The block, None if it is not there or not whole (the archive carries checksums)."""
    try:
        data = io.BytesIO(path(folder, number).read_bytes())
        with np.load(data, allow_pickle=False) as archive:
            values, counts = archive["values"], archive["counts"]
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):
        return None
    return Counted(values, *(int(count) for count in counts))
