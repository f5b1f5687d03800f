"""What scores formulas on some rows: from branch tables and sketches, or from columns alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lpzero.arrays import FloatArray
from primitives.rejection import Rejected
from primitives.score import AnyFormula


class FormulaScorer(Protocol):
    """Scores (A,) of formulas, or why a formula has none."""

    def score(self, formula: AnyFormula) -> FloatArray | Rejected: ...
    def scores(self, formulas: Sequence[AnyFormula]) -> list[FloatArray | Rejected]: ...
