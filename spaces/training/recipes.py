"""How each nano table is made: its space, task, optimiser settings and seeds."""

from __future__ import annotations

from dataclasses import dataclass

from spaces.errors import UnknownNameError
from spaces.training.trainer import Recipe


@dataclass(frozen=True, slots=True)
class TablePlan:
    """What to train: `n_archs` architectures, each from the seeds 0 .. n_seeds - 1.

    The first `n_repeated` are trained from `n_repeated_seeds` seeds, so that the noise of the
    table is known. A target is the mean over the first `n_seeds` seeds of its architecture.
    """

    name: str
    task: str
    recipe: Recipe
    n_archs: int
    n_seeds: int
    n_repeated: int
    n_repeated_seeds: int
    sampling_seed: int = 20

    def seeds_of(self, index: int) -> range:
        """The seeds from which the architecture of that index is trained."""
        return range(self.n_repeated_seeds if index < self.n_repeated else self.n_seeds)


PLANS = {
    plan.name: plan
    for plan in (
        TablePlan("nano-gpt2", "causal", Recipe(steps=300, learning_rate=2e-3), 104, 1, 32, 3),
        TablePlan(
            "nano-flexibert",
            "replaced",
            Recipe(steps=400, learning_rate=3e-3, windows=8),
            96,
            1,
            16,
            3,
        ),
    )
}


def plan_named(name: str) -> TablePlan:
    """The plan of that table."""
    if name not in PLANS:
        raise UnknownNameError("nano table", name, PLANS)
    return PLANS[name]
