"""The floor of a search over products: what it fits to permuted targets, and how that tests.

    terms' logarithms (T, A), rows  ->  ProductFloor: targets (A,)  ->  both rhos of the winner

`lpzero.judgement.permutations.permutation_floor` calls it with permuted targets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lpzero.arrays import FloatArray, IntArray
from lpzero.judgement.correlation import spearman, spearman_many
from lpzero.judgement.permutations import Fitted
from lpzero.judgement.ranks import rank_targets
from lpzero.scores.products import Found

# Ranks (n,) of the targets of the rows searched -> products, in any order.
ProductSearch = Callable[[FloatArray], list[Found]]


@dataclass(frozen=True, eq=False)
class ProductFloor:
    """A search of products with its rows: searched, chosen on (these or more of them), and test.

    Of the products found, the winner has the largest absolute rho on the rows it is chosen on.
    """

    find: ProductSearch
    logs: FloatArray
    searched: IntArray
    chosen_on: IntArray
    test: IntArray

    def __call__(self, targets: FloatArray) -> Fitted:
        """The winner's rho on the rows it was chosen on and on the test rows, for targets (A,)."""
        found = self.find(rank_targets(targets[self.searched]))
        if not found:
            return Fitted(0.0, 0.0)
        scores = np.stack([one.factors.logs(self.logs) for one in found])
        on_chosen = rank_targets(targets[self.chosen_on])
        rho = spearman_many(scores[:, self.chosen_on], on_chosen).values
        best = int(np.argmax(np.abs(rho)))
        tested = spearman(scores[best][self.test], targets[self.test])
        return Fitted(abs(float(rho[best])), float(np.sign(rho[best])) * tested)
