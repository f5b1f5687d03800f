"""Branch tables of sketches that are verified only when they are read."""

from __future__ import annotations

from collections.abc import Sequence

from lpzero.parallel import Workers
from lpzero.scores.branch_table import BranchTable, branch_table
from lpzero.scores.chains import ChainSet
from lpzero.sketches.builder import Sketches
from lpzero.sketches.sketch import Sketch, SketchError


def stored_table(
    sketches: Sequence[Sketch],
    chains: ChainSet,
    rows: Sequence[int] | None = None,
    workers: Workers | None = None,
    label: str | None = None,
) -> BranchTable:
    """The table of the sketches in `rows` (all of them if None); broken sketches are rebuilt."""
    try:
        return branch_table(sketches, chains, rows, workers, label)
    except SketchError:
        picked = range(len(sketches)) if rows is None else rows
        if not (isinstance(sketches, Sketches) and sketches.repair(picked)):
            raise
        return branch_table(sketches, chains, rows, workers, label)
