"""The scores of published formulas and of the best count on a table: the winner's rivals.

They cost a few look-ups each, because the branch table of the run is there already.
"""

from __future__ import annotations

import numpy as np

from lpzero.judgement.counters import BEST_COUNT
from lpzero.judgement.rivals import Rival
from lpzero.scores.formula_scorer import FormulaScorer
from primitives.classics import CLASSICS, Classic, Fidelity
from primitives.parser import parse
from primitives.rejection import Rejected

PUBLISHED = "published formula"


def formula_rivals(evaluator: FormulaScorer, count: str | None) -> list[Rival]:
    """The best count, if its formula is given, and every published formula that has scores here."""
    asked = [] if count is None else [(BEST_COUNT, BEST_COUNT, count)]
    for classic in CLASSICS:
        if classic.text is not None:
            asked.append((_name(classic), PUBLISHED, classic.text))
    found = []
    for name, kind, text in asked:
        scores = evaluator.score(parse(text))
        if not isinstance(scores, Rejected) and np.isfinite(scores).all():
            found.append(Rival(name, kind, scores, text))
    return found


def _name(classic: Classic) -> str:
    """The proxy's name; it says so where the formula is a relative of it rather than the proxy."""
    return f"{classic.name} (kin)" if classic.fidelity is Fidelity.KIN else classic.name
