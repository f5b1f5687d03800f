"""The rows of a nano table: the architectures of a plan, one training, and the finished table.

The build itself, parallel and resumable, is in `lpzero.training`.
"""

from __future__ import annotations

import dataclasses
import json
import platform
import random
from functools import lru_cache
from typing import Any

import numpy as np

import spaces
from spaces.training.recipes import TablePlan

SCHEMA = 1
LICENCE = "Apache-2.0"


def sample_architectures(plan: TablePlan) -> list[Any]:
    """The plan's distinct architectures, drawn from its seed; a smaller plan gives a prefix."""
    space = spaces.get(plan.name)
    rng = random.Random(plan.sampling_seed)
    archs: dict[Any, None] = {}
    while len(archs) < plan.n_archs:
        archs[space.sample(rng)] = None
    return list(archs)


@lru_cache(maxsize=1)
def _task(name: str, context: int) -> Any:
    from spaces.training.tasks import TASKS

    return TASKS[name](context)


def train_one(plan: TablePlan, index: int, seed: int) -> dict[str, Any]:
    """One run as a journal line; `index` counts the plan's architectures."""
    from spaces.training.trainer import train

    space = spaces.get(plan.name)
    arch = sample_architectures(plan)[index]
    run = train(space, arch, _task(plan.task, space.batch_shape[1]), plan.recipe, seed)
    return {"index": index, **dataclasses.asdict(run)}


def to_table(
    plan: TablePlan, runs: dict[tuple[int, int], dict[str, Any]], header: dict[str, Any]
) -> str:
    """The table as JSON text, one row a line."""
    from spaces.training.tasks import TASKS

    space = spaces.get(plan.name)
    rows = []
    for index, arch in enumerate(sample_architectures(plan)):
        of_arch = [runs[index, seed] for seed in plan.seeds_of(index)]
        kept = [
            {
                "seed": run["seed"],
                "target": run["target"],
                "seconds": round(run["seconds"], 2),
                "steps": run["steps"],
            }
            for run in of_arch
        ]
        target = float(np.mean([run["target"] for run in kept[: plan.n_seeds]]))
        rows.append({"arch": space.to_json(arch), "target": target, "runs": kept})
    head = {
        "schema": SCHEMA,
        "name": plan.name,
        "space": plan.name,
        "target": TASKS[plan.task].target_name,
        "licence": LICENCE,
        "provenance": header | _versions(space),
        "noise": noise(plan, runs),
    }
    lines = ",\n".join(json.dumps(row) for row in rows)
    return json.dumps(head, indent=1)[:-2] + ',\n "rows": [\n' + lines + "\n]}\n"


def noise(plan: TablePlan, runs: dict[tuple[int, int], dict[str, Any]]) -> dict[str, Any]:
    """The noise ceiling: the rank correlation of two independent sets of trainings.

    `rho_between_targets` compares the mean over seeds 0 .. k - 1, which is the target, with the
    mean over the next k seeds, on the repeated architectures; `rho_between_seeds` single seeds.
    """
    from scipy.stats import spearmanr

    def rho(first: range, second: range) -> float:
        a, b = (
            [float(np.mean([runs[i, s]["target"] for s in seeds])) for i in range(plan.n_repeated)]
            for seeds in (first, second)
        )
        return round(float(spearmanr(a, b).statistic), 4)

    k, seeds = plan.n_seeds, plan.seeds_of(0)
    return {
        "n": plan.n_repeated,
        "rho_between_targets": rho(range(k), range(k, 2 * k)),
        "rho_between_seeds": {
            f"{a}-{b}": rho(range(a, a + 1), range(b, b + 1)) for b in seeds for a in range(b)
        },
    }


def _versions(space: Any) -> dict[str, Any]:
    """The versions that produced the table: of the space, the trainer, Python and torch."""
    import torch

    from spaces.training.trainer import VERSION

    return {
        "space_version": space.version,
        "trainer_version": VERSION,
        "python": platform.python_version(),
        "torch": torch.__version__,
    }
