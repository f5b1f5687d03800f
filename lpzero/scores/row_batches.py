"""Scores of formulas batch after batch of rows: by workers, or because sketches are large.

What is not in the branch table is computed on the tensors of the sketches, which `Values` keep in
memory. A score depends on its own architecture alone, so that rows can take turns, and every worker
takes some of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.parallel import Lost, Workers, stream
from lpzero.scores.branch_table import BranchTable, branch_table, repaired, rows_of
from lpzero.scores.chains import ChainSet
from lpzero.scores.values import Values
from lpzero.sketches.builder import Sketches
from lpzero.sketches.sketch import Sketch, SketchError
from primitives.formula import Formula

MEMORY = 1 << 30  # bytes of sketches up to which all of them are in memory at a time
_BATCHES = 8  # of which so many fill it
_LEAST_SENT = 32  # batches, so that the last workers end together
_PER_JOB = 4


def scores_in_batches(
    formulas: Sequence[Formula],
    source: BranchTable | tuple[Sequence[Sketch], ChainSet],
    workers: Workers | None = None,
) -> FloatArray:
    """The scores (K, A) of each formula; NaN where it has none.

    Each call reads the sketches again if it has to: ask for many formulas at once. Another process
    reads stored branch tables, or builds them, so that a table is not sent.
    """
    if isinstance(source, BranchTable):
        sketches, chains, rows = source.sketches, source.chains, source.rows
    else:
        sketches, chains = source
        rows = range(len(sketches))
    if workers is None or not isinstance(sketches, Sketches):
        workers = Workers()
    table = source if isinstance(source, BranchTable) and workers.is_this_process else None
    n_rows = batch_size(sketches, workers)
    if table is not None and n_rows >= len(rows):
        return Values(table).scores(formulas)
    batches = [range(len(rows))[i : i + n_rows] for i in range(0, len(rows), n_rows)]
    task = _BatchTask(sketches, chains, tuple(rows), table, tuple(formulas))
    parts = repaired(sketches, rows, lambda: _answers(task, batches, workers))
    scores = np.concatenate(parts, axis=1)
    scores[~np.isfinite(scores).all(axis=1)] = np.nan  # rejected in one batch, rejected in all
    return scores


def batch_size(sketches: Sequence[Sketch], workers: Workers) -> int:
    """The rows that are scored at a time: all, unless sketches are large or workers can help."""
    n_rows = len(sketches)
    if not isinstance(sketches, Sketches):
        return n_rows
    size = sketches.report.bytes
    if size > MEMORY:
        n_rows = n_rows * MEMORY // (_BATCHES * size)
    if not workers.is_this_process:
        n_rows = min(n_rows, len(sketches) // max(_LEAST_SENT, _PER_JOB * workers.jobs))
    return max(1, n_rows)


def _answers(task: _BatchTask, batches: Sequence[range], workers: Workers) -> list[FloatArray]:
    answers: dict[int, FloatArray] = {}
    with closing(stream(task, batches, workers)) as outcomes:
        for index, outcome in outcomes:
            if isinstance(outcome, Lost):
                raise SketchError(f"rows {batches[index]} have no scores: {outcome.reason}")
            answers[index] = outcome
    return [answers[index] for index in range(len(batches))]


@dataclass(frozen=True, slots=True, eq=False)
class _BatchTask:
    """Runs in a worker: scores (K, rows) of the formulas on some of the rows."""

    sketches: Sequence[Sketch]
    chains: ChainSet
    rows: tuple[int, ...]
    table: BranchTable | None
    formulas: tuple[Formula, ...]

    def __call__(self, places: range) -> FloatArray:
        if self.table is not None:
            return Values(rows_of(self.table, np.array(places))).scores(self.formulas)
        rows = [self.rows[place] for place in places]
        return Values(branch_table(self.sketches, self.chains, rows)).scores(self.formulas)
