"""How each nano table is trained: its space, task, optimiser settings and seeds."""

from __future__ import annotations

from dataclasses import dataclass

from spaces.errors import UnknownNameError
from spaces.training.trainer import Recipe


@dataclass(frozen=True, slots=True)
class TablePlan:
    """What to train: `n_archs` architectures, each from the seeds 0 .. n_seeds - 1.

    A target is the mean over these seeds. The first `n_repeated` architectures are trained from
    `n_repeated_seeds` seeds, at least twice as many, so that the noise of a target is known.
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
        TablePlan(
            "nano-gpt2",
            "causal",
            Recipe(steps=300, learning_rate=2e-3),
            n_archs=104,
            n_seeds=1,
            n_repeated=32,
            n_repeated_seeds=3,
        ),
        # Detection is the noisier target, so it is the mean of three seeds instead of one.
        TablePlan(
            "nano-flexibert",
            "replaced",
            Recipe(steps=400, learning_rate=3e-3, windows=8),
            n_archs=96,
            n_seeds=3,
            n_repeated=16,
            n_repeated_seeds=6,
        ),
        # Steps of recurrent layers cannot run side by side: short windows, few and large updates.
        TablePlan(
            "nano-rnn",
            "causal",
            Recipe(steps=200, learning_rate=2e-2),
            n_archs=112,
            n_seeds=1,
            n_repeated=18,
            n_repeated_seeds=3,
        ),
    )
}


def plan_named(name: str) -> TablePlan:
    """The plan of that table."""
    if name not in PLANS:
        raise UnknownNameError("nano table", name, PLANS)
    return PLANS[name]
