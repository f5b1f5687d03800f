"""Training as the evaluator: of each architecture alone, or of a supernet before the search.

An architecture alone is trained by the recipe of nano tables or by the space's own function; one of
a supernet is measured with the weights that it inherits.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from lpzero.errors import InputError, LPZeroError
from lpzero.parallel import Lost, Workers, stream
from lpzero.supernet.trained import open_supernet
from spaces.base import Space
from spaces.training.recipes import PLANS, Plan, TablePlan, own_plan
from spaces.user_modules import address_of


class TrainingError(LPZeroError):
    """An architecture could not be trained."""


class Training:
    """Trains each architecture by the recipe of the space's table; several at a time."""

    name = "training"
    is_free = False
    pool: Sequence[Any] | None = None

    def __init__(self, space: Space[Any], steps: int | None, workers: Workers) -> None:
        self.space, self.workers = space, workers
        self.plan = _plan(space, steps)
        self.target = self.plan.target_name

    def describe(self) -> dict[str, Any]:
        known = {"evaluator": self.name, "seeds": self.plan.n_seeds}
        if not isinstance(self.plan, TablePlan):
            return known
        return known | {"task": self.plan.task, **dataclasses.asdict(self.plan.recipe)}

    def evaluate(self, archs: Sequence[Any]) -> Iterable[float]:
        waiting: dict[int, float] = {}
        place = 0
        task = _TrainTask(self.plan)
        with closing(stream(task, list(archs), self.workers)) as results:
            for index, target in results:
                if isinstance(target, Lost):
                    raise TrainingError(f"training was lost: {target.reason}")
                waiting[index] = target
                while place in waiting:
                    yield waiting.pop(place)
                    place += 1


@dataclass(frozen=True, slots=True)
class _TrainTask:
    """Runs in a worker: the mean target of one architecture over the plan's seeds.

    It is minus infinity, worse than any other, if a training fails.
    """

    plan: Plan

    def __call__(self, arch: Any) -> float:
        targets = [self.plan.run(arch, seed)["target"] for seed in range(self.plan.n_seeds)]
        return -np.inf if None in targets else float(np.mean(targets))


def _plan(space: Space[Any], steps: int | None) -> Plan:
    """The space's own training, or the recipe of its nano table."""
    own = own_plan(address_of(space))
    if own is not None:
        if steps is not None:
            raise InputError("training steps are for nano spaces; your own train decides its steps")
        return own
    if space.name not in PLANS:
        known = ", ".join(sorted(PLANS))
        raise InputError(f"there is no training recipe for space {space.name}; use {known}")
    plan = PLANS[space.name]
    if steps is not None:
        plan = dataclasses.replace(plan, recipe=dataclasses.replace(plan.recipe, steps=steps))
    return plan


class SupernetEvaluator:
    """Measures every architecture on the data that the supernet's training held out for choices."""

    name = "supernet"
    is_free = False
    pool: Sequence[Any] | None = None

    def __init__(self, space: Space[Any], folder: str) -> None:
        self.trained = open_supernet(folder)
        found = self.trained.supernet.space.name
        if found != space.name:
            raise InputError(f"{folder} has a supernet of space {found}, not {space.name}")
        self.folder = folder
        self.target = f"{self.trained.task.target_name} in the supernet"

    def describe(self) -> dict[str, Any]:
        settings = self.trained.request.settings
        return {
            "evaluator": self.name,
            "directory": self.folder,
            "dataset": self.trained.request.dataset,
            "sampler": settings.sampler,
            "steps": settings.steps,
        }

    def evaluate(self, archs: Sequence[Any]) -> Iterable[float]:
        return (self.trained.measure(arch).value for arch in archs)
