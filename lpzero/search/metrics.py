"""Metrics to compare searches and proxies.

Of traces: the best target after each evaluation, and the evaluations needed for a threshold. Of
proxies: MAPD, the distance between the Pareto front by proxy and the true one (section 4.2 of ETAS,
after LTS).
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lpzero.arrays import FloatArray, IntArray
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


def front(quality: FloatArray, cost: FloatArray) -> IntArray:
    """The non-dominated rows, cheapest first: quality (n,) is maximised, cost (n,) minimised."""
    order = np.lexsort((-quality, cost))
    kept, best = [], -np.inf
    for row in order:
        if quality[row] > best:
            kept.append(row)
            best = quality[row]
    return np.array(kept, dtype=np.int64)


def mapd(scores: FloatArray, perplexities: FloatArray, costs: FloatArray) -> float:
    """Mean over the proxy's front of |p - p_gt| / p_gt.

    The proxy's front is that of (scores, costs). p is the perplexity of one of its architectures,
    and p_gt that of the true front's architecture with the nearest cost (the cheaper if tied).
    """
    predicted = front(scores, costs)
    return _mean_gap(perplexities[predicted], costs[predicted], perplexities, costs)


def found_mapd(
    found: FloatArray, found_costs: FloatArray, perplexities: FloatArray, costs: FloatArray
) -> float:
    """The same of what searches found: perplexities and costs (m,) beside those of all (n,).

    Only what is on the front of the found ones counts: a search within a wide budget may find the
    result of a narrow one again, or a worse one at a higher cost.
    """
    kept = front(-found, found_costs)
    return _mean_gap(found[kept], found_costs[kept], perplexities, costs)


def _mean_gap(
    found: FloatArray, found_costs: FloatArray, perplexities: FloatArray, costs: FloatArray
) -> float:
    """The mean relative distance from the true front's architecture with the nearest cost."""
    true = front(-perplexities, costs)
    nearest = true[np.argmin(np.abs(found_costs[:, None] - costs[true]), axis=1)]
    gaps = np.abs(found - perplexities[nearest]) / perplexities[nearest]
    return float(gaps.mean())
