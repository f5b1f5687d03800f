"""The scores of published formulas and of the best count on a table: the winner's rivals.

Every campaign and every exhaustive run sets its winner beside the same published formulas, whose
scores depend on the sketch and the chain set alone: they are stored when they are first computed. A
file per sketch holds them, named by the sketch's address and the digest of the chain set, as branch
tables are, and sealed with both. The best count costs a few look-ups.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.errors import EnvelopeError, WriteError
from lpzero.files import read_sealed, sealed, write_bytes
from lpzero.judgement.counters import BEST_COUNT
from lpzero.judgement.rivals import Rival
from lpzero.parallel import Workers
from lpzero.scores.branch_table import BranchTable
from lpzero.scores.chains import ChainSet
from lpzero.scores.row_batches import scores_in_batches
from lpzero.scores.values import Values
from lpzero.sketches.builder import Sketches
from primitives.classics import CLASSICS, Classic, Fidelity
from primitives.formula import Formula
from primitives.parser import parse

PUBLISHED = "published formula"
logger = logging.getLogger(__name__)


def formula_rivals(
    table: BranchTable, count: str | None, workers: Workers | None = None
) -> list[Rival]:
    """The best count, if its formula is given, and every published formula that has scores here."""
    classics = [(classic, classic.text) for classic in CLASSICS if classic.text is not None]
    published = stored_scores(table, [parse(text) for _, text in classics], workers)
    rivals = []
    if count is not None:  # a product of sizes and of the depth
        scores = Values(table).scores([parse(count)])[0]
        rivals.append(Rival(BEST_COUNT, BEST_COUNT, scores, count))
    for (classic, text), scores in zip(classics, published, strict=True):
        rivals.append(Rival(_name(classic), PUBLISHED, scores, text))
    return [rival for rival in rivals if np.isfinite(rival.scores).all()]


def _name(classic: Classic) -> str:
    """The proxy's name; it says so where the formula is a relative of it rather than the proxy."""
    return f"{classic.name} (kin)" if classic.fidelity is Fidelity.KIN else classic.name


def stored_scores(
    table: BranchTable, formulas: Sequence[Formula], workers: Workers | None = None
) -> FloatArray:
    """The scores (K, A) of each formula, as `scores_in_batches` has them; computed once and stored.

    A formula that is rejected on some row has no scores to store.
    """
    if not isinstance(table.sketches, Sketches):
        return scores_in_batches(formulas, table, workers)
    files = _Files(table.sketches, table.rows, table.chains)
    stored = files.read()
    texts = [str(formula) for formula in formulas]
    by_text: dict[str, FloatArray] = {}
    missing = []
    for text, formula in dict(zip(texts, formulas, strict=True)).items():
        if all(text in of_row for of_row in stored):
            by_text[text] = np.array([of_row[text] for of_row in stored])
        else:
            missing.append(formula)
    if missing:
        scores = scores_in_batches(missing, table, workers)
        computed = dict(zip(map(str, missing), scores, strict=True))
        by_text |= computed
        files.add(stored, {t: s for t, s in computed.items() if np.isfinite(s).all()})
    return np.stack([by_text[text] for text in texts])


def ending(chains: ChainSet) -> str:
    """The file's suffix after the sketch's address."""
    return f".{chains.digest[:16]}.scores.json"


class _Files:
    """The files of some rows of stored sketches."""

    def __init__(self, sketches: Sketches, rows: Sequence[int], chains: ChainSet) -> None:
        addresses = [sketches.addresses[row] for row in rows]
        self._paths = [sketches.store.path(sketches.space, a, ending(chains)) for a in addresses]
        self._places = [f"{address} {chains.digest}" for address in addresses]

    def read(self) -> list[dict[str, float]]:
        """The scores of each row by formula; none where a file is missing or broken."""
        stored: list[dict[str, float]] = []
        for path, place in zip(self._paths, self._places, strict=True):
            try:
                scores = read_sealed(path, place)["scores"]
                stored.append({text: float(score) for text, score in scores.items()})
            except FileNotFoundError:
                stored.append({})
            except (EnvelopeError, LookupError, TypeError, ValueError, AttributeError) as error:
                logger.warning("%s: %s; computing the scores again", path, error)
                stored.append({})
        return stored

    def add(self, stored: Sequence[dict[str, float]], scores: dict[str, FloatArray]) -> None:
        """Store more scores (A,) beside those that the files have."""
        if not scores:
            return
        try:
            for row, (path, place) in enumerate(zip(self._paths, self._places, strict=True)):
                new = {text: float(of[row]) for text, of in scores.items()}
                content = sealed(place, {"scores": stored[row] | new})
                write_bytes(path, json.dumps(content).encode(), is_flushed=False)
        except WriteError as error:  # this run has them all the same
            logger.warning("%s; the scores are computed again next time", error)
