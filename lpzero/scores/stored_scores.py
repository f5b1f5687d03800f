"""Scores of formulas that are asked for again and again, stored beside the sketches.

Every campaign and every exhaustive run sets its winner beside the same published formulas, whose
scores depend on the sketch and the chain set alone. A file per sketch holds them, named by the
sketch's address and the digest of the chain set, as branch tables are, and sealed with both.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.errors import EnvelopeError, WriteError
from lpzero.files import read_sealed, sealed, write_bytes
from lpzero.scores.chains import ChainSet
from lpzero.scores.evaluator import FormulaEvaluator
from lpzero.scores.formula_scorer import FormulaScorer
from lpzero.sketches.builder import Sketches
from primitives.formula import Formula
from primitives.rejection import Rejected

logger = logging.getLogger(__name__)


def ending(chains: ChainSet) -> str:
    """The file's suffix after the sketch's address."""
    return f".{chains.digest[:16]}.scores.json"


def stored_scores(
    evaluator: FormulaEvaluator,
    formulas: Sequence[Formula],
    computing: FormulaScorer | None = None,
) -> list[FloatArray | Rejected]:
    """The scores of each formula, those of `evaluator.scores`; read, or computed and stored.

    `computing`, if given, computes them in the evaluator's place. A formula that is rejected on
    some row has no scores to store.
    """
    computing = computing or evaluator
    if not isinstance(evaluator.sketches, Sketches):
        return computing.scores(formulas)
    files = _Files(evaluator.sketches, evaluator.rows, evaluator.table.chains)
    known = files.read()
    texts = [str(formula) for formula in formulas]
    found: dict[str, FloatArray | Rejected] = {}
    missing = []
    for text, formula in dict(zip(texts, formulas, strict=True)).items():
        if all(text in of_row for of_row in known):
            found[text] = np.array([of_row[text] for of_row in known])
        else:
            missing.append(formula)
    if missing:
        computed = dict(zip(map(str, missing), computing.scores(missing), strict=True))
        found |= computed
        files.add(known, {t: s for t, s in computed.items() if not isinstance(s, Rejected)})
    return [found[text] for text in texts]


class _Files:
    """The files of some rows of stored sketches."""

    def __init__(self, sketches: Sketches, rows: Sequence[int], chains: ChainSet) -> None:
        addresses = [sketches.addresses[row] for row in rows]
        self._paths = [sketches.store.path(sketches.space, a, ending(chains)) for a in addresses]
        self._places = [f"{address} {chains.digest}" for address in addresses]

    def read(self) -> list[dict[str, float]]:
        """The scores of each row by formula; none where a file is missing or broken."""
        found: list[dict[str, float]] = []
        for path, place in zip(self._paths, self._places, strict=True):
            try:
                scores = read_sealed(path, place)["scores"]
                found.append({text: float(score) for text, score in scores.items()})
            except FileNotFoundError:
                found.append({})
            except (EnvelopeError, LookupError, TypeError, ValueError, AttributeError) as error:
                logger.warning("%s: %s; computing the scores again", path, error)
                found.append({})
        return found

    def add(self, known: Sequence[dict[str, float]], scores: dict[str, FloatArray]) -> None:
        """Store more scores (A,) beside those that are known."""
        if not scores:
            return
        try:
            for row, (path, place) in enumerate(zip(self._paths, self._places, strict=True)):
                new = {text: float(of[row]) for text, of in scores.items()}
                content = sealed(place, {"scores": known[row] | new})
                write_bytes(path, json.dumps(content).encode(), is_flushed=False)
        except WriteError as error:  # they are known all the same
            logger.warning("%s; the scores are computed again next time", error)
