"""Metrics to compare searches: the best target after each evaluation, evaluations needed."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.errors import InputError
from lpzero.judgement.bootstrap import Interval, draw_counts, percentile_interval
from lpzero.search.evaluators import Evaluator
from lpzero.search.sampler import Sampler

TOP_SHARE, N_REFERENCE = 0.01, 10_000
_SEED = 1_000_003  # for the reference sample; searches use small seeds
_RESAMPLES = 2000

Trace = Sequence[Mapping[str, Any]]


def best_after(trace: Trace, n: int) -> FloatArray:
    """The best target after 1 to n evaluations (n,), constant after the search's end."""
    targets = [e["target"] for e in trace if e["evaluations"] and e.get("target") is not None]
    if not targets:
        raise InputError("nothing was evaluated: the trace has no best target")
    running = np.maximum.accumulate(targets)[:n]
    return np.concatenate([running, np.full(n - len(running), running[-1])])


def evaluations_to_reach(trace: Trace, threshold: float) -> int | None:
    """The evaluations until a target reached the threshold; None if none did."""
    for entry in trace:
        target = entry.get("target")
        if entry["evaluations"] and target is not None and target >= threshold:
            return int(entry["evaluations"])
    return None


def top_threshold(sampler: Sampler, evaluator: Evaluator) -> float:
    """The lowest target of the best 1% of the pool, or of a large fixed sample of the space."""
    if not evaluator.is_free:
        raise InputError(f"evaluator {evaluator.name} is too expensive for a reference sample")
    rng = random.Random(_SEED)
    pool = sampler.pool
    if pool is None:
        pool = sampler.draw(N_REFERENCE, lambda: sampler.space.sample(rng))
    targets = np.sort(np.array(list(evaluator.evaluate(pool))))[::-1]
    return float(targets[max(1, round(TOP_SHARE * len(targets))) - 1])


def mean_interval(values: Sequence[float]) -> Interval:
    """The bootstrap 95% interval of a mean."""
    counts = draw_counts(len(values), _RESAMPLES)
    return percentile_interval(counts @ np.asarray(values, float) / len(values))
