"""The permutation floor: what a search finds when there is nothing to find.

The targets are shuffled over the architectures and the same search runs again, K times. The mean
rho on the rows that its winner was chosen on is how well it fits noise: the floor. The mean rho on
the test rows must be 0 within its interval, else test rows leak into the search. `ProductFloor` is
such a search of products:

    terms' logarithms (T, A), rows  ->  ProductFloor: targets (A,)  ->  both rhos of the winner
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lpzero.arrays import FloatArray, IntArray
from lpzero.errors import InputError, LPZeroError
from lpzero.judgement.bootstrap import RESAMPLES, Interval, draw_counts, percentile_interval
from lpzero.judgement.correlation import spearman, spearman_many
from lpzero.judgement.ranks import rank_targets
from lpzero.parallel import Lost, Workers, stream

if TYPE_CHECKING:
    from lpzero.scores.products import Found

LEAST_PERMUTATIONS = 2  # of which a mean has an interval
PERMUTATIONS = 20  # unless told otherwise


def check_permutations(permutations: int) -> None:
    """Raise InputError unless so many permutations make a floor, or none is asked for."""
    if permutations and permutations < LEAST_PERMUTATIONS:
        raise InputError(
            f"{permutations} permutations were asked for; expected 0 or at least"
            f" {LEAST_PERMUTATIONS}"
        )


class Fitted(NamedTuple):
    """The rho of a search's winner: on the rows that it was chosen on, and on the test rows."""

    fit: float
    test: float


# Targets (n,) of all rows -> what the search reached with them. It may run in other processes.
Search = Callable[[FloatArray], tuple[float, float]]


@dataclass(frozen=True, slots=True)
class PermutationFloor:
    """Mean rhos over K searches of permuted targets, with 95% intervals of these means."""

    permutations: int
    fit: float
    fit_ci: Interval
    test: float
    test_ci: Interval
    fitted: tuple[Fitted, ...]

    def to_json(self) -> dict[str, Any]:
        """The fields as plain JSON values; `fitted` has both rhos of each permutation."""
        return {
            "permutations": self.permutations,
            "fit": self.fit,
            "fit_ci": list(self.fit_ci),
            "test": self.test,
            "test_ci": list(self.test_ci),
            "fitted": [fitted._asdict() for fitted in self.fitted],
        }


def permutation_floor(
    search: Search,
    targets: FloatArray,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
    workers: Workers | None = None,
    label: str | None = None,
) -> PermutationFloor:
    """The floor of a search on targets (n,): the same for equal seeds and any number of jobs."""
    if permutations < LEAST_PERMUTATIONS:
        raise InputError(
            f"{permutations} permutations were asked for; expected at least {LEAST_PERMUTATIONS}"
        )
    shuffled = [permuted(targets, seed, number) for number in range(permutations)]
    by_number: dict[int, Fitted] = {}
    for number, reached in stream(search, shuffled, workers, label):
        if isinstance(reached, Lost):
            raise LPZeroError(f"the search with permutation {number} failed: {reached.reason}")
        by_number[number] = Fitted(*map(float, reached))
    fitted = tuple(by_number[number] for number in range(permutations))
    fit, test = np.array(fitted).T
    return PermutationFloor(
        permutations, float(fit.mean()), _mean_interval(fit),
        float(test.mean()), _mean_interval(test), fitted,
    )  # fmt: skip


def permuted(targets: FloatArray, seed: int, number: int) -> FloatArray:
    """The targets (n,) in the order of one permutation, which depends on seed and number alone."""
    drawn = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, number])))
    return np.asarray(targets)[drawn.permutation(len(targets))]


def _mean_interval(values: FloatArray) -> Interval:
    """The bootstrap interval of the mean of values (K,)."""
    return percentile_interval(draw_counts(len(values), RESAMPLES) @ values / len(values))


# Ranks (n,) of the targets of the rows searched -> products, in any order.
ProductSearch = Callable[[FloatArray], "list[Found]"]


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
        products = self.find(rank_targets(targets[self.searched]))
        if not products:
            return Fitted(0.0, 0.0)
        scores = np.stack([product.factors.logs(self.logs) for product in products])
        on_chosen = rank_targets(targets[self.chosen_on])
        rho = spearman_many(scores[:, self.chosen_on], on_chosen).values
        best = int(np.argmax(np.abs(rho)))
        tested = spearman(scores[best][self.test], targets[self.test])
        return Fitted(abs(float(rho[best])), float(np.sign(rho[best])) * tested)
