"""The scores of published formulas and of the best count on a table: the winner's rivals.

The best count costs a few look-ups, because the branch table of the run is there already; the
scores of published formulas are stored when they are first computed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.judgement.counters import BEST_COUNT
from lpzero.judgement.rivals import Rival
from lpzero.scores.evaluator import FormulaEvaluator
from lpzero.scores.formula_scorer import FormulaScorer
from lpzero.scores.stored_scores import stored_scores
from primitives.classics import CLASSICS, Classic, Fidelity
from primitives.formula import Formula
from primitives.parser import parse
from primitives.rejection import Rejected

PUBLISHED = "published formula"


def formula_rivals(
    evaluator: FormulaScorer, count: str | None, computing: FormulaScorer | None = None
) -> list[Rival]:
    """The best count, if its formula is given, and every published formula that has scores here.

    `computing`, if given, scores published formulas in the evaluator's place.
    """
    classics = [(classic, classic.text) for classic in CLASSICS if classic.text is not None]
    published = _scores(evaluator, [parse(text) for _, text in classics], computing)
    asked = []
    if count is not None:
        asked.append((BEST_COUNT, BEST_COUNT, _count_scores(evaluator, count), count))
    for (classic, text), scores in zip(classics, published, strict=True):
        asked.append((_name(classic), PUBLISHED, scores, text))
    return [
        Rival(name, kind, scores, text)
        for name, kind, scores, text in asked
        if not isinstance(scores, Rejected) and np.isfinite(scores).all()
    ]


def _count_scores(evaluator: FormulaScorer, count: str) -> FloatArray | Rejected:
    """The scores of the best count, which may name the depth beside sizes."""
    if isinstance(evaluator, FormulaEvaluator):
        depth = evaluator.table.n_blocks.astype(np.float64)
        return evaluator.score(parse(count), {"depth": depth})
    return evaluator.score(parse(count))


def _scores(
    evaluator: FormulaScorer, formulas: Sequence[Formula], computing: FormulaScorer | None
) -> list[FloatArray | Rejected]:
    if isinstance(evaluator, FormulaEvaluator):
        return stored_scores(evaluator, formulas, computing)
    return (computing or evaluator).scores(formulas)


def _name(classic: Classic) -> str:
    """The proxy's name; it says so where the formula is a relative of it rather than the proxy."""
    return f"{classic.name} (kin)" if classic.fidelity is Fidelity.KIN else classic.name
