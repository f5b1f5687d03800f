"""Branch tables of sketches that are verified only when they are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from lpzero.parallel import Workers
from lpzero.scores.branch_table import BranchTable, branch_table
from lpzero.scores.chains import ChainSet
from lpzero.sketches.builder import Sketches
from lpzero.sketches.sketch import Sketch, SketchError

R = TypeVar("R")


def stored_table(
    sketches: Sequence[Sketch],
    chains: ChainSet,
    rows: Sequence[int] | None = None,
    workers: Workers | None = None,
    label: str | None = None,
) -> BranchTable:
    """The table of the sketches in `rows` (all of them if None); broken sketches are rebuilt."""
    picked = range(len(sketches)) if rows is None else rows
    return repaired(sketches, picked, lambda: branch_table(sketches, chains, rows, workers, label))


def repaired(sketches: Sequence[Sketch], rows: Sequence[int], compute: Callable[[], R]) -> R:
    """What is computed of these sketches, once more if broken ones had to be rebuilt for it."""
    try:
        return compute()
    except SketchError:
        if not (isinstance(sketches, Sketches) and sketches.repair(rows)):
            raise
        return compute()
