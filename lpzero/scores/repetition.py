"""How far a formula's scores repeat with networks of other weights and other batches."""

from __future__ import annotations

import numpy as np

from lpzero.judgement.stability import Stability, stability
from lpzero.scores.formula_scorer import FormulaScorer
from primitives.formula import Formula
from primitives.rejection import Rejected


def repetition(formula: Formula, evaluator: FormulaScorer, *others: FormulaScorer) -> Stability:
    """The stability of the formula's scores in other evaluators; 0 where one rejects it."""
    scores = evaluator.score(formula)
    if isinstance(scores, Rejected):
        return Stability(len(others), 0.0, 0.0)
    again = [other.score(formula) for other in others]
    lost = np.full(len(scores), np.nan)
    return stability(scores, np.stack([lost if isinstance(s, Rejected) else s for s in again]))
