"""How far a formula's scores repeat with networks of other weights and other batches."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.judgement.stability import Stability, stability
from primitives.rejection import Rejected
from primitives.score import AnyFormula


class Scorer(Protocol):
    """What scores a formula on the rows of a table."""

    def score(self, formula: AnyFormula) -> FloatArray | Rejected: ...


def repetition(formula: AnyFormula, evaluator: Scorer, *others: Scorer) -> Stability:
    """The stability of the formula's scores in other evaluators; 0 where one rejects it."""
    scores = evaluator.score(formula)
    if isinstance(scores, Rejected):
        return Stability(len(others), 0.0, 0.0)
    again = [other.score(formula) for other in others]
    lost = np.full(len(scores), np.nan)
    return stability(scores, np.stack([lost if isinstance(s, Rejected) else s for s in again]))
