"""MAPD, the distance between the Pareto front by a proxy and the true one (ETAS 4.2, after LTS)."""

from __future__ import annotations

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.search.improvement import front


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
