"""Training of nano architectures, with the recipe that built their tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from lpzero.errors import InputError, LPZeroError
from lpzero.parallel import Lost, Workers, stream
from spaces.base import Space
from spaces.training.recipes import PLANS, TablePlan


class TrainingError(LPZeroError):
    """An architecture could not be trained."""


class Training:
    """Trains each architecture by the recipe of the space's table; several at a time."""

    name = "training"
    is_free = False
    pool: Sequence[Any] | None = None

    def __init__(self, space: Space[Any], steps: int | None, workers: Workers) -> None:
        if space.name not in PLANS:
            known = ", ".join(sorted(PLANS))
            raise InputError(f"there is no training recipe for space {space.name}; use {known}")
        plan = PLANS[space.name]
        if steps is not None:
            plan = dataclasses.replace(plan, recipe=dataclasses.replace(plan.recipe, steps=steps))
        self.space, self.plan, self.workers = space, plan, workers
        self.target = _target_name(plan)

    def describe(self) -> dict[str, Any]:
        recipe = dataclasses.asdict(self.plan.recipe)
        return {
            "evaluator": self.name,
            "task": self.plan.task,
            "seeds": self.plan.n_seeds,
            **recipe,
        }

    def evaluate(self, archs: Sequence[Any]) -> Iterable[float]:
        waiting: dict[int, float] = {}
        place = 0
        task = _TrainTask(self.space, self.plan)
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

    space: Space[Any]
    plan: TablePlan

    def __call__(self, arch: Any) -> float:
        from spaces.training.trainer import train

        task = _task(self.plan.task, self.space.batch_shape[1])
        runs = [
            train(self.space, arch, task, self.plan.recipe, seed)
            for seed in range(self.plan.n_seeds)
        ]
        if any(run.failure for run in runs):
            return -np.inf
        return float(np.mean([run.target for run in runs]))


@lru_cache(maxsize=1)
def _task(name: str, context: int) -> Any:
    from spaces.training.tasks import TASKS

    return TASKS[name](context)


def _target_name(plan: TablePlan) -> str:
    from spaces.training.tasks import TASKS

    return TASKS[plan.task].target_name
