"""The best count: the product of at most four sizes that ranks a table best, without any network.

Sizes of blocks under `sum`, `inner` and `last`, sizes of the ends and the depth, found by the same
search on the same rows as a formula. It is the rival that a discovered formula has to beat: only
what a formula adds to it comes from the network.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lpzero.arrays import FloatArray, IntArray
from lpzero.judgement import counters
from lpzero.judgement.correlation import spearman_many
from lpzero.judgement.ranks import rank_targets
from lpzero.scores.branch_table import BranchTable, state_sizes
from lpzero.scores.chains import bare_chains
from lpzero.scores.products import Beam, search
from lpzero.scores.terms import COUNTS, TermTable, term_table
from lpzero.scores.values import Values
from primitives.formula import Formula

if TYPE_CHECKING:
    from spaces.tables import Table


@dataclass(frozen=True, eq=False)
class BestCount:
    """A product of sizes with its scores on every row (A,)."""

    formula: Formula
    scores: FloatArray


def count_terms(table: Table) -> TermTable:
    """The terms of counts on every row of a table; no network is built."""
    space = table.space
    sizes, end_sizes = state_sizes(
        [{"blocks": space.block_sizes(arch), "ends": space.end_sizes(arch)} for arch in table.archs]
    )
    n_blocks = np.array([space.depth(arch) for arch in table.archs], dtype=np.int64)
    branches = BranchTable(bare_chains(), n_blocks, {}, {}, {}, {}, sizes, end_sizes)
    return term_table(Values(branches, {"depth": counters.score("depth", table)}), COUNTS)


def best_count(
    table: Table, searched: IntArray, chosen_on: IntArray | None = None, beam: Beam | None = None
) -> BestCount:
    """The best product of sizes: searched on some rows, chosen on these or on more of them."""
    terms = count_terms(table)
    products = search(terms.logs[:, searched], rank_targets(table.targets[searched]), beam)
    rows = searched if chosen_on is None else chosen_on
    logs = np.stack([product.factors.logs(terms.logs) for product in products])
    rho = spearman_many(logs[:, rows], rank_targets(table.targets[rows])).values
    best = int(np.argmax(np.abs(rho)))
    sign = -1 if rho[best] < 0 else 1
    return BestCount(products[best].factors.formula(terms, sign), sign * logs[best])
