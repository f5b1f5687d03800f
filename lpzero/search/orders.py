"""What other orders of trainings find in a table, beside a search that looked its targets up.

the table's architectures, a number of trainings  ->  the best so far after each, for every order
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import gammaln

from lpzero.arrays import FloatArray
from lpzero.judgement import counters
from lpzero.search.evaluators import LookUp

RANDOM = "random, the median"
_COUNTERS = ("parameters", "sept")


def orders(evaluator: LookUp, archs: Sequence[Any], n: int) -> dict[str, list[float]]:
    """The best after 1 to n trainings: of random ones the median, and by the largest counter."""
    targets = np.array(list(evaluator.evaluate(archs)))
    space, found = evaluator.table.space, {RANDOM: median_of_best(targets, n)}
    for name in _COUNTERS:
        if name in counters.quick(space):
            counted = np.array([counters.get(name)(space, arch) for arch in archs])
            order = np.argsort(-counted, kind="stable")[:n]
            found[f"{name}, the largest first"] = np.maximum.accumulate(targets[order])
    return {name: list(map(float, best)) for name, best in found.items()}


def median_of_best(targets: FloatArray, n: int) -> FloatArray:
    """The median (n,) of the best of 1 to n targets drawn without replacement.

    Of N targets, k drawn are all among the r smallest with probability C(r, k) / C(N, k).
    """
    ordered, ranks = np.sort(targets), np.arange(1.0, len(targets) + 1)
    best = []
    for k in range(1, min(n, len(targets)) + 1):
        logs = np.full(len(ordered), -np.inf)
        logs[k - 1 :] = _log_choose(ranks[k - 1 :], k) - _log_choose(ranks[-1:], k)
        # The least target that half of the draws or more do not exceed.
        best.append(ordered[int(np.argmax(np.exp(logs) >= 0.5 - 1e-9))])
    return np.array(best)


def _log_choose(n: FloatArray, k: int) -> FloatArray:
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))
