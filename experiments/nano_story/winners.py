"""Winners retrained from seeds that no search used, because a search selects lucky seeds."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from lpzero.parallel import Workers, stream
from spaces.base import Space
from spaces.training.recipes import plan_named
from spaces.training.tasks import TASKS
from spaces.training.trainer import train

SEEDS = (100, 101, 102)


class Winners:
    """Targets of architectures from the fresh seeds, saved in a file."""

    def __init__(self, space: Space[Any], steps: int | None, path: Path) -> None:
        plan = plan_named(space.name)
        self.space, self.task, self.path = space, plan.task, path
        self.recipe = (
            plan.recipe if steps is None else dataclasses.replace(plan.recipe, steps=steps)
        )
        self.known: dict[str, float] = {}
        if path.is_file():
            self.known = json.loads(path.read_text(encoding="utf-8"))

    def train(self, archs: Sequence[dict[str, Any]], jobs: int) -> None:
        """Train the architectures that have no target yet."""
        todo = [(arch, seed) for arch in archs for seed in SEEDS]
        todo = [task for task in todo if self._key(*task) not in self.known]
        with closing(stream(self._trained, todo, Workers(jobs), "winners")) as results:
            for index, target in results:
                self.known[self._key(*todo[index])] = target
                self.path.write_text(json.dumps(self.known, indent=1) + "\n", encoding="utf-8")

    def target(self, arch: dict[str, Any]) -> float:
        """The mean over the fresh seeds."""
        return float(np.mean([self.known[self._key(arch, seed)] for seed in SEEDS]))

    def _trained(self, task: tuple[dict[str, Any], int]) -> float:
        arch, seed = task
        work = TASKS[self.task](self.space.batch_shape[1])
        return train(self.space, self.space.from_json(arch), work, self.recipe, seed).target

    def _key(self, arch: dict[str, Any], seed: int) -> str:
        return json.dumps([arch, self.recipe.steps, seed], sort_keys=True)
