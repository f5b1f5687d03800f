"""Mean ranks of several proxies over several tables, with the difference that chance explains.

    measures (proxies, tables), larger is better  ->  MeanRanks

Friedman's test says whether the ranks differ at all; two mean ranks differ at the 5% level of
Nemenyi's test if they are further apart than the critical difference (Demsar, 2006).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.judgement.ranks import rank

LEVEL = 0.05
LEAST_TABLES = 2
LEAST_PROXIES = 3  # Friedman's test needs as many


@dataclass(frozen=True, slots=True, eq=False)
class MeanRanks:
    """Mean ranks (K,), 1 is the best; the critical difference, and Friedman's p."""

    ranks: FloatArray
    critical_difference: float
    p: float


def mean_ranks(measures: FloatArray) -> MeanRanks:
    """The mean ranks of K proxies by measures (K, N) on N tables; ties share their mean rank."""
    from scipy.stats import friedmanchisquare, studentized_range

    K, N = measures.shape
    assert N >= LEAST_TABLES, "one table has ranks, not mean ranks"
    assert K >= LEAST_PROXIES, "too few to test"
    ranks = np.stack([rank(-column) for column in measures.T]).mean(axis=0)
    quantile = float(studentized_range.ppf(1 - LEVEL, K, np.inf)) / math.sqrt(2)
    difference = quantile * math.sqrt(K * (K + 1) / (6 * N))
    is_flat = bool((np.ptp(measures, axis=0) == 0).all())  # nothing differs anywhere
    p = 1.0 if is_flat else float(friedmanchisquare(*measures).pvalue)
    return MeanRanks(ranks, difference, p)
