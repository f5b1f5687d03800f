"""The winner's rivals on a table: the best count and the published formulas, with their scores.

The best count is the product of at most four sizes that ranks a table best, without any network:
sizes of blocks under `sum`, `inner` and `last`, sizes of the ends and the counters, found by the
same search on the same rows as a formula. Only what a formula adds to it comes from the network.

Every campaign and every exhaustive run sets its winner beside the same published formulas, whose
scores depend on the sketch and the chain set alone: they are stored when they are first computed. A
file per sketch holds them, named by the sketch's address and the digest of the chain set, as branch
tables are, and sealed with both.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from lpzero.arrays import FloatArray, IntArray
from lpzero.errors import EnvelopeError, WriteError
from lpzero.files import read_sealed, sealed, write_bytes
from lpzero.judgement import counters
from lpzero.judgement.correlation import spearman_many
from lpzero.judgement.counters import BEST_COUNT
from lpzero.judgement.ranks import rank_targets
from lpzero.judgement.rivals import Count, Rival
from lpzero.parallel import Workers
from lpzero.scores.branch_table import BranchTable, state_sizes
from lpzero.scores.chains import ChainSet, bare_chains
from lpzero.scores.products import search
from lpzero.scores.row_batches import scores_in_batches
from lpzero.scores.terms import COUNTS, TermTable, term_table
from lpzero.scores.values import Values
from lpzero.sketches.builder import Sketches
from primitives.classics import CLASSICS, Classic, Fidelity
from primitives.formula import Formula
from primitives.parser import parse

if TYPE_CHECKING:
    from spaces.tables import Table


PUBLISHED = "published formula"
logger = logging.getLogger(__name__)


def formula_rivals(
    table: BranchTable,
    count: str | None,
    counted: Mapping[str, FloatArray],
    workers: Workers | None = None,
) -> list[Rival]:
    """The best count, if its formula is given, and every published formula that has scores here.

    `counted` (A,) are the counters that the best count may name.
    """
    classics = [(classic, classic.text) for classic in CLASSICS if classic.text is not None]
    published = stored_scores(table, [parse(text) for _, text in classics], workers)
    rivals = []
    if count is not None:  # a product of sizes and counters
        scores = Values(table, counted).scores([parse(count)])[0]
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


def count_terms(table: Table) -> TermTable:
    """The terms of counts on every row of a table; no network is built."""
    return term_table(size_values(table, counters.factors(table)), COUNTS)


def size_values(table: Table, columns: Mapping[str, FloatArray]) -> Values:
    """The sizes of every row of a table, with columns (A,) beside them; no network is built."""
    space = table.space
    sizes, end_sizes = state_sizes(
        [{"blocks": space.block_sizes(arch), "ends": space.end_sizes(arch)} for arch in table.archs]
    )
    n_blocks = np.array([space.depth(arch) for arch in table.archs], dtype=np.int64)
    branches = BranchTable(bare_chains(), n_blocks, {}, {}, {}, {}, sizes, end_sizes)
    return Values(branches, columns)


def best_count(table: Table, searched: IntArray, chosen_on: IntArray | None = None) -> Count:
    """The best product of sizes: searched on some rows, chosen on these or on more of them."""
    terms = count_terms(table)
    products = search(terms.logs[:, searched], rank_targets(table.targets[searched]))
    rows = searched if chosen_on is None else chosen_on
    logs = np.stack([product.factors.logs(terms.logs) for product in products])
    rho = spearman_many(logs[:, rows], rank_targets(table.targets[rows])).values
    best = int(np.argmax(np.abs(rho)))
    sign = -1 if rho[best] < 0 else 1
    return Count(products[best].factors.formula(terms, sign), sign * logs[best])
