"""The rows of a trained table: the architectures of a plan, one training, and the finished table.

The build itself, parallel and resumable, is in `lpzero.training`.
"""

from __future__ import annotations

import json
import platform
import random
from typing import Any

import numpy as np

from spaces.errors import ArchitectureError
from spaces.training.recipes import Plan

SCHEMA = 1
LICENCE, OWN_LICENCE = "Apache-2.0", "the user's own"


def sample_architectures(plan: Plan) -> list[Any]:
    """The plan's distinct architectures, drawn from its seed; a smaller plan gives a prefix."""
    space = plan.space
    if space.cardinality() < plan.n_archs:
        raise ArchitectureError(
            f"space {space.name} has {space.cardinality():,} architectures, fewer than the"
            f" {plan.n_archs:,} to train"
        )
    rng = random.Random(plan.sampling_seed)
    archs: dict[Any, None] = {}
    while len(archs) < plan.n_archs:
        archs[space.sample(rng)] = None
    return list(archs)


def train_one(plan: Plan, index: int, seed: int) -> dict[str, Any]:
    """One run as a journal line; `index` counts the plan's architectures.

    The target of a run that failed is None, and `failure` is the reason.
    """
    arch = sample_architectures(plan)[index]
    return {"index": index, "arch": plan.space.to_json(arch), **plan.run(arch, seed)}


def to_table(
    plan: Plan, runs: dict[tuple[int, int], dict[str, Any]], header: dict[str, Any]
) -> str:
    """The table as JSON text, one row a line; runs that failed are apart, with their reasons.

    An architecture has a row if none of the runs that its target is the mean of failed.
    """
    space = plan.space
    rows, failures = [], []
    for index, arch in enumerate(sample_architectures(plan)):
        of_arch = [runs[index, seed] for seed in plan.seeds_of(index)]
        for run in of_arch:
            if run["target"] is None:
                told = {k: run[k] for k in ("seed", "steps", "failure") if k in run}
                failures.append({"arch": space.to_json(arch)} | told)
        kept = [_kept(run) for run in of_arch if run["target"] is not None]
        if [run["seed"] for run in kept[: plan.n_seeds]] != list(range(plan.n_seeds)):
            continue
        target = float(np.mean([run["target"] for run in kept[: plan.n_seeds]]))
        rows.append({"arch": space.to_json(arch), "target": target, "runs": kept})
    head = {
        "schema": SCHEMA,
        "name": plan.name,
        "space": plan.address,
        "target": plan.target_name,
        "licence": LICENCE if plan.address == plan.name else OWN_LICENCE,
        "provenance": header | _versions(space),
        "noise": noise(plan, runs),
    }
    parts = {"rows": rows, "failures": failures} if failures else {"rows": rows}
    text = json.dumps(head, indent=1)[:-2]
    for name, lines in parts.items():
        text += f',\n "{name}": [\n' + ",\n".join(json.dumps(line) for line in lines) + "\n]"
    return text + "}\n"


def _kept(run: dict[str, Any]) -> dict[str, Any]:
    """What the table has of a run; a user's own training has no steps that we know of."""
    rounded = run | {"seconds": round(run["seconds"], 2)}
    return {k: rounded[k] for k in ("seed", "target", "seconds", "steps") if k in rounded}


def noise(plan: Plan, runs: dict[tuple[int, int], dict[str, Any]]) -> dict[str, Any]:
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
