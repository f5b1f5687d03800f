"""Scores of formulas batch after batch of rows: by workers, or because sketches are large.

What is not in the branch table is computed on the tensors of the sketches, which an evaluator
keeps in memory. A score depends on its own architecture alone, so that rows can take turns, and
every worker takes some of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.parallel import Lost, Workers, stream
from lpzero.scores.branch_table import BranchTable, repaired, rows_of
from lpzero.scores.chains import ChainSet
from lpzero.scores.evaluator import FormulaEvaluator
from lpzero.scores.formula_scorer import FormulaScorer
from lpzero.sketches.builder import Sketches
from lpzero.sketches.sketch import Sketch, SketchError
from primitives.formula import Formula
from primitives.rejection import Rejected

MEMORY = 1 << 30  # bytes of sketches up to which all of them are in memory at a time
_BATCHES = 8  # of which so many fill it
_LEAST_SENT = 32  # batches, so that the last workers end together
_PER_JOB = 4


class RowBatches:
    """Scores of formulas, computed for `n_rows` architectures at a time.

    Each call reads the sketches again if it has to: ask for many formulas at once. Another process
    reads stored branch tables, or builds them, so `table` is not sent; this one needs it only to
    spare reading them.
    """

    def __init__(
        self,
        sketches: Sequence[Sketch],
        chains: ChainSet,
        n_rows: int,
        table: BranchTable | None = None,
        workers: Workers | None = None,
    ) -> None:
        self.sketches, self.n_rows, self.workers = sketches, n_rows, workers or Workers()
        self._chains = chains
        self._table = table if self.workers.is_this_process else None

    def score(self, formula: Formula) -> FloatArray | Rejected:
        """The formula's scores (A,), or why it has none."""
        return self.scores([formula])[0]

    def scores(self, formulas: Sequence[Formula]) -> list[FloatArray | Rejected]:
        """The scores of each formula; the first batch without scores says why there are none."""
        n = len(self.sketches)
        batches = [range(i, min(i + self.n_rows, n)) for i in range(0, n, self.n_rows)]
        task = _BatchTask(self.sketches, self._chains, self._table, tuple(formulas))
        found = repaired(self.sketches, range(n), lambda: self._answers(task, batches))
        return [_joined(of_formula) for of_formula in zip(*found, strict=True)]

    def _answers(self, task: _BatchTask, batches: Sequence[range]) -> list[_Scores]:
        answers: dict[int, _Scores] = {}
        with closing(stream(task, batches, self.workers)) as outcomes:
            for index, outcome in outcomes:
                if isinstance(outcome, Lost):
                    raise SketchError(f"rows {batches[index]} have no scores: {outcome.reason}")
                answers[index] = outcome
        return [answers[index] for index in range(len(batches))]


_Scores = list[FloatArray | Rejected]


@dataclass(frozen=True, slots=True, eq=False)
class _BatchTask:
    """Runs in a worker: scores of the formulas on some rows."""

    sketches: Sequence[Sketch]
    chains: ChainSet
    table: BranchTable | None
    formulas: tuple[Formula, ...]

    def __call__(self, rows: range) -> _Scores:
        table = None if self.table is None else rows_of(self.table, np.array(rows))
        batch = FormulaEvaluator(self.sketches, self.chains, rows=rows, table=table)
        return batch.scores(self.formulas)


def _joined(batches: Sequence[FloatArray | Rejected]) -> FloatArray | Rejected:
    found = []
    for batch in batches:
        if isinstance(batch, Rejected):
            return batch
        found.append(batch)
    return np.concatenate(found)


def scorer_of(
    sketches: Sequence[Sketch],
    chains: ChainSet,
    table: BranchTable | None = None,
    workers: Workers | None = None,
) -> FormulaScorer:
    """What scores formulas on all rows: in batches if sketches are large, or if workers can."""
    if not isinstance(sketches, Sketches):
        return FormulaEvaluator(sketches, chains, table=table)
    workers, size = workers or Workers(), sketches.report.bytes
    if workers.is_this_process and size <= MEMORY:
        return FormulaEvaluator(sketches, chains, table=table)
    n_rows = len(sketches)
    if size > MEMORY:
        n_rows = n_rows * MEMORY // (_BATCHES * size)
    if not workers.is_this_process:
        n_rows = min(n_rows, len(sketches) // max(_LEAST_SENT, _PER_JOB * workers.jobs))
    return RowBatches(sketches, chains, max(1, n_rows), table, workers)
