"""What scores formulas on some rows: from branch tables and sketches, or from columns alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lpzero.arrays import FloatArray
from primitives.formula import Formula
from primitives.rejection import Rejected


class FormulaScorer(Protocol):
    """Scores (A,) of formulas, or why a formula has none."""

    def score(self, formula: Formula) -> FloatArray | Rejected: ...
    def scores(self, formulas: Sequence[Formula]) -> list[FloatArray | Rejected]: ...
