"""Scores of formulas on tables whose sketches do not fit into memory: batch after batch of rows.

What is not in the branch table is computed on the tensors of the sketches, which an evaluator
keeps in memory. A score depends on its own architecture alone, so that rows can take turns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.scores.branch_table import BranchTable, rows_of
from lpzero.scores.evaluator import FormulaEvaluator
from lpzero.scores.formula_scorer import FormulaScorer
from lpzero.sketches.builder import Sketches
from lpzero.sketches.sketch import Sketch
from primitives.rejection import Rejected
from primitives.score import AnyFormula

MEMORY = 1 << 30  # bytes of sketches up to which all of them are in memory at a time
_BATCHES = 8  # of which so many fill it


class RowBatches:
    """Scores of formulas, computed for `n_rows` architectures at a time.

    Each call reads the sketches again if it has to: ask for many formulas at once.
    """

    def __init__(self, sketches: Sequence[Sketch], table: BranchTable, n_rows: int) -> None:
        self.sketches, self.table, self.n_rows = sketches, table, n_rows

    def score(self, formula: AnyFormula) -> FloatArray | Rejected:
        """The formula's scores (A,), or why it has none."""
        return self.scores([formula])[0]

    def scores(self, formulas: Sequence[AnyFormula]) -> list[FloatArray | Rejected]:
        """The scores of each formula; the first batch without scores says why there are none."""
        parts: list[list[FloatArray]] = [[] for _ in formulas]
        rejected: dict[int, Rejected] = {}
        for start in range(0, self.table.n_archs, self.n_rows):
            rows = np.arange(start, min(start + self.n_rows, self.table.n_archs))
            batch = FormulaEvaluator(
                self.sketches, rows=rows.tolist(), table=rows_of(self.table, rows)
            )
            left = [place for place in range(len(formulas)) if place not in rejected]
            for place, found in zip(left, batch.scores([formulas[i] for i in left]), strict=True):
                if isinstance(found, Rejected):
                    rejected[place] = found
                else:
                    parts[place].append(found)
        return [
            rejected[place] if place in rejected else np.concatenate(of_formula)
            for place, of_formula in enumerate(parts)
        ]


def scorer_of(sketches: Sequence[Sketch], table: BranchTable) -> FormulaScorer:
    """What scores formulas on all rows, in batches if the stored sketches are large."""
    size = sketches.report.bytes if isinstance(sketches, Sketches) else 0
    if size <= MEMORY:
        return FormulaEvaluator(sketches, table=table)
    n_rows = len(sketches) * MEMORY // (_BATCHES * size)
    return RowBatches(sketches, table, max(1, n_rows))
