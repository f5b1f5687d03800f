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
    """One run as a journal line; `index` counts the plan's architectures.

    The target of a run that failed is None, and `failure` is the reason.
    """
    from spaces.training.trainer import train

    space = spaces.get(plan.name)
    arch = sample_architectures(plan)[index]
    run = train(space, arch, _task(plan.task, space.batch_shape[1]), plan.recipe, seed)
    line = {"index": index, **dataclasses.asdict(run)}
    if run.failure is None:
        del line["failure"]
        return line
    return line | {"target": None}


def to_table(
    plan: TablePlan, runs: dict[tuple[int, int], dict[str, Any]], header: dict[str, Any]
) -> str:
    """The table as JSON text, one row a line; runs that failed are apart, with their reasons.

    An architecture has a row if none of the runs that its target is the mean of failed.
    """
    from spaces.training.tasks import TASKS

    space = spaces.get(plan.name)
    rows, failures = [], []
    for index, arch in enumerate(sample_architectures(plan)):
        of_arch = [runs[index, seed] for seed in plan.seeds_of(index)]
        for run in of_arch:
            if run["target"] is None:
                told = {name: run[name] for name in ("seed", "steps", "failure")}
                failures.append({"arch": space.to_json(arch), **told})
        kept = [
            {
                "seed": run["seed"],
                "target": run["target"],
                "seconds": round(run["seconds"], 2),
                "steps": run["steps"],
            }
            for run in of_arch
            if run["target"] is not None
        ]
        if [run["seed"] for run in kept[: plan.n_seeds]] != list(range(plan.n_seeds)):
            continue
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
    parts = {"rows": rows, "failures": failures} if failures else {"rows": rows}
    text = json.dumps(head, indent=1)[:-2]
    for name, lines in parts.items():
        text += f',\n "{name}": [\n' + ",\n".join(json.dumps(line) for line in lines) + "\n]"
    return text + "}\n"


def noise(plan: TablePlan, runs: dict[tuple[int, int], dict[str, Any]]) -> dict[str, Any]:
    """The noise ceiling: the rank correlation of two independent sets of trainings.

    `rho_between_targets` compares the mean over seeds 0 .. k - 1, which is the target, with the
    mean over the next k seeds, on the repeated architectures of which no run failed;
    `rho_between_seeds` single seeds. Of fewer than two of them there is no correlation.
    """
    from scipy.stats import spearmanr

    k, seeds = plan.n_seeds, plan.seeds_of(0)
    sound = [
        index
        for index in range(plan.n_repeated)
        if all(runs[index, seed]["target"] is not None for seed in seeds)
    ]

    def rho(first: range, second: range) -> float:
        a, b = (
            [float(np.mean([runs[i, s]["target"] for s in seeds])) for i in sound]
            for seeds in (first, second)
        )
        return round(float(spearmanr(a, b).statistic), 4)

    if len(sound) < 2:
        return {"n": len(sound)}
    return {
        "n": len(sound),
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
