"""How a table is trained: its space, task, optimiser settings and seeds.

A nano table has a recipe of ours (`TablePlan`), one of a user's space the function `train(arch,
seed)` that the space brings (`OwnPlan`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import spaces
from spaces.errors import SpaceError, UnknownNameError, shown
from spaces.training.trainer import Recipe

# Of a table that a user's space trains, unless chosen.
N_ARCHS, N_SEEDS = 128, 1
_SHARE_REPEATED = 8  # one architecture in so many is trained again, for the noise of targets


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

    @property
    def address(self) -> str:
        return self.name

    @property
    def space(self) -> Any:
        import spaces

        return spaces.get(self.name)

    @property
    def target_name(self) -> str:
        from spaces.training.tasks import TASKS

        return TASKS[self.task].target_name

    def request(self) -> dict[str, Any]:
        """What determines the table: the plan, and the text that networks are trained on."""
        from spaces.minibatch import pydoc_digest

        return {"plan": asdict(self), "text_sha256": pydoc_digest()}

    def run(self, arch: Any, seed: int) -> dict[str, Any]:
        """One training as a journal line; the target of one that failed is None."""
        from spaces.training.trainer import train

        task = _task(self.task, self.space.batch_shape[1])
        run = train(self.space, arch, task, self.recipe, seed)
        line = asdict(run)
        if run.failure is None:
            del line["failure"]
            return line
        return line | {"target": None}


@lru_cache(maxsize=1)
def _task(name: str, context: int) -> Any:
    from spaces.training.tasks import TASKS

    return TASKS[name](context)


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


class OwnTrainingError(SpaceError, RuntimeError):
    """The user's training function failed, or gave no number."""


@dataclass(frozen=True, slots=True)
class OwnPlan:
    """What to train, as in a `TablePlan`; `address` names the space, my_module:SPACE."""

    address: str
    n_archs: int
    n_seeds: int
    n_repeated: int
    n_repeated_seeds: int
    sampling_seed: int = 20

    def seeds_of(self, index: int) -> range:
        """The seeds from which the architecture of that index is trained."""
        return range(self.n_repeated_seeds if index < self.n_repeated else self.n_seeds)

    @property
    def name(self) -> str:
        return str(self.space.name)

    @property
    def space(self) -> Any:
        return spaces.get(self.address)

    @property
    def target_name(self) -> str:
        return str(self.space.target)

    def request(self) -> dict[str, Any]:
        """What determines the table: the plan, the space and the source of its training."""
        space = self.space
        return {"plan": asdict(self), "identity": space.identity(), "train": space.train_source}

    def run(self, arch: Any, seed: int) -> dict[str, Any]:
        """One training as a journal line; a target that is not finite is a failure."""
        return run_own(self.space.train, self.space, arch, seed)


@dataclass(frozen=True, slots=True)
class FunctionPlan:
    """Training, once, by a function that the user names beside the space."""

    address: str
    train: Callable[[Any, int], float]
    n_seeds: int = 1

    @property
    def space(self) -> Any:
        return spaces.get(self.address)

    @property
    def target_name(self) -> str:
        return "target"

    def run(self, arch: Any, seed: int) -> dict[str, Any]:
        """One training, as that of an `OwnPlan`."""
        return run_own(self.train, self.space, arch, seed)


def run_own(train: Callable[[Any, int], float], space: Any, arch: Any, seed: int) -> dict[str, Any]:
    """One training by a user's function; a target that is not finite is a failure."""
    import torch

    start = time.perf_counter()
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            given = train(arch, seed)
    except Exception as error:
        raise OwnTrainingError(
            f"train of space {space.name} failed with seed {seed} on"
            f" {shown(space.to_json(arch))}: {type(error).__name__}: {error}"
        ) from error
    try:
        target = float(given)
    except (TypeError, ValueError):
        raise OwnTrainingError(
            f"train of space {space.name} gave {shown(given)}, expected a number"
        ) from None
    line = {"seed": seed, "target": target, "seconds": time.perf_counter() - start}
    if math.isfinite(target):
        return line
    return line | {"target": None, "failure": f"the target is {target}"}


# A table to train: how many architectures of a space, from which seeds, and how.
Plan: TypeAlias = TablePlan | OwnPlan


def own_plan(
    address: str, n_archs: int | None = None, n_seeds: int | None = None
) -> OwnPlan | None:
    """The plan of the space at the address; None if it brings no training."""
    space = spaces.get(address)
    if getattr(space, "train", None) is None:
        return None
    archs, seeds = n_archs or N_ARCHS, n_seeds or N_SEEDS
    repeated = min(archs, max(2, archs // _SHARE_REPEATED))
    return OwnPlan(address, archs, seeds, repeated, 2 * seeds)
