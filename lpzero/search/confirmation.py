"""Whether the best architecture of a search is better than the second: both are trained again.

the two best, k new seeds  ->  their targets, the mean of the paired differences, its 95% interval
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import stdtrit

from lpzero.search.environment import Environment
from lpzero.search.evaluators import Training

_LEVEL = 0.975  # of Student's t, for an interval of 95%


def confirmation(environment: Environment, n_seeds: int) -> dict[str, Any] | None:
    """The targets of the two best from new seeds, and whether they differ; None if not asked for.

    Each target is a fact of the journal, so that a search that is stopped here goes on.
    """
    training = environment.evaluator
    known = [arch for arch in environment.observed if environment.target(arch) is not None]
    if not n_seeds or not isinstance(training, Training) or len(known) < 2:
        return None
    pair = environment.best_observed(2)
    first = training.plan.n_seeds
    seeds = range(first, first + n_seeds)
    rows = [_targets(environment, training, pair, seed) for seed in seeds]
    found: dict[str, Any] = {
        "seeds": list(seeds),
        "runner_up": environment.space.to_json(pair[1]),
        "best_targets": [row[0] for row in rows],
        "runner_up_targets": [row[1] for row in rows],
    }
    found |= paired([(a, b) for a, b in rows if not isinstance(a, str) and not isinstance(b, str)])
    environment.remark(_sentence(found))
    return found


def _targets(
    environment: Environment, training: Training, archs: list[Any], seed: int
) -> list[float | str]:
    """The targets of training from that seed, or why there are none."""
    fact = f"target from seed {seed}"
    return environment.ledger.find(fact, archs, lambda new: training.train(new, [seed]))


def paired(rows: list[tuple[float, float]]) -> dict[str, Any]:
    """The mean difference of pairs; of two or more also its 95% interval by Student's t."""
    differences = np.array([a - b for a, b in rows])
    n = len(differences)
    if n == 0:
        return {"difference": None, "difference_ci": None, "differ": False}
    mean = float(differences.mean())
    if n == 1:
        return {"difference": mean, "difference_ci": None, "differ": False}
    half = float(stdtrit(n - 1, _LEVEL)) * float(differences.std(ddof=1)) / math.sqrt(n)
    interval = [mean - half, mean + half]
    return {"difference": mean, "difference_ci": interval, "differ": bool(abs(mean) > half)}


def _sentence(found: dict[str, Any]) -> str:
    n = len(found["seeds"])
    if found["difference_ci"] is None:
        return f"trained again from {n} more seeds: too few to say whether best and second differ"
    low, high = found["difference_ci"]
    verdict = "they differ" if found["differ"] else "they cannot be told apart"
    return (
        f"trained again from {n} more seeds, the best is {found['difference']:+.4g}"
        f" [{low:.4g}, {high:.4g}] from the second: {verdict}"
    )
