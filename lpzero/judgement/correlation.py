"""Rank correlations of many score vectors with one target, always finite, ties averaged.

A constant score vector ranks nothing: its correlation is 0 and it is flagged. The correlation of a
vector with a value that is not finite is -inf, and it is flagged too. Stability is the correlation
of a proxy's scores with those of other weights and batches: it needs no target, so it can be
measured on all rows before anything is chosen. Shapes: F score vectors, n architectures.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from lpzero.arrays import BoolArray, FloatArray, IntArray, LabelArray
from lpzero.errors import FitnessError
from lpzero.judgement import large_resamples
from lpzero.judgement.ranks import (
    MOST_ARCHS,
    quantise_keys,
    rank,
    rank_many,
    rank_targets,
    sorted_positions,
)

LEAST_IN_GROUP = 5  # architectures that a rho within a group needs
_TOP_SHARE = 0.1
# Small enough for the second-level cache, large enough to make NumPy's overhead negligible.
_CHUNK_ELEMENTS = 1 << 15
_PAIR_ELEMENTS = 1 << 20


class Correlations(NamedTuple):
    """One value per score vector (F,), and which vectors were constant or not finite (F,)."""

    values: FloatArray
    constant: BoolArray
    non_finite: BoolArray


def spearman_many(scores: FloatArray, target_ranks: FloatArray) -> Correlations:
    """Spearman's rho of each row of scores (F, n) with a target given by its ranks (n,)."""
    n_rows, n = _check(scores, target_ranks)
    centred = target_ranks - target_ranks.mean()
    spread = float(np.sqrt(centred @ centred))
    rho, constant = np.zeros(n_rows), np.zeros(n_rows, dtype=np.bool_)
    non_finite = np.zeros(n_rows, dtype=np.bool_)
    step = max(1, _CHUNK_ELEMENTS // n)
    places = np.arange(n) - (n - 1) / 2
    for start in range(0, n_rows, step):
        part = slice(start, start + step)
        chunk, non_finite[part] = _finite_rows(scores[part])
        positions, firsts, lengths = sorted_positions(chunk)
        on_targets = centred.take(positions)
        products = on_targets @ places
        squares = np.full(len(chunk), n * (n * n - 1) / 12)
        if len(firsts):
            _tie(products, squares, on_targets, firsts, lengths)
        constant[part] = squares == 0
        rho[part] = bounded_ratio(products, np.sqrt(squares) * spread)
    rho[non_finite] = -np.inf
    return Correlations(rho, constant & ~non_finite, non_finite)


def _tie(
    products: FloatArray,
    squares: FloatArray,
    on_targets: FloatArray,
    firsts: IntArray,
    lengths: IntArray,
) -> None:
    """Give tied scores the mean of their places, in products and squares (F,).

    `on_targets` (F, n) are the centred target ranks in the order of the scores. All numbers are
    multiples of 1/4 far below 2^53, so that sums are exact in any order.
    """
    n = on_targets.shape[1]
    rows = firsts // n
    within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    off_middle = np.repeat((lengths - 1) / 2, lengths) - within
    targets = on_targets.reshape(-1).take(np.repeat(firsts, lengths) + within)
    moved = np.bincount(np.repeat(rows, lengths), off_middle * targets, len(products))
    products += moved
    size = lengths.astype(np.float64)
    squares -= np.bincount(rows, size * (size * size - 1) / 12, len(products))


def spearman(scores: FloatArray, targets: FloatArray) -> float:
    """Spearman's rho of one score vector (n,) with the targets (n,)."""
    return float(spearman_many(scores[np.newaxis], rank_targets(targets)).values[0])


def untied(rho: float, scores: FloatArray) -> float:
    """The expectation of rho when ties of the scores (n,) are broken at random.

    Breaking ties keeps the expected covariance with the targets and widens the spread of the
    ranks to that of 1 to n. Ties of the targets stay: a search has to order the scores alone.
    """
    n = len(scores)
    tied = float(np.sum((rank(scores) - (n + 1) / 2) ** 2))
    return rho * math.sqrt(tied / (n * (n * n - 1) / 12))


def kendall_many(scores: FloatArray, targets: FloatArray) -> Correlations:
    """Kendall's tau-b of each row of scores (F, n) with the targets (n,).

    Compares pair by pair: exact, and fast enough for the finalists of a search.
    """
    n_rows, n = _check(scores, targets)
    if n > large_resamples.MANY:
        return _kendall_of_many_rows(scores, rank_targets(targets))
    first, second = np.triu_indices(n, 1)
    target_ranks = rank_targets(targets)
    order = np.sign(target_ranks[first] - target_ranks[second])
    n_target = float(np.count_nonzero(order))
    tau, constant = np.zeros(n_rows), np.zeros(n_rows, dtype=np.bool_)
    non_finite = np.zeros(n_rows, dtype=np.bool_)
    step = max(1, _PAIR_ELEMENTS // len(first))
    for start in range(0, n_rows, step):
        part = slice(start, start + step)
        chunk, non_finite[part] = _finite_rows(scores[part])
        keys = quantise_keys(chunk)
        signs = np.sign(keys[:, first] - keys[:, second])
        n_pairs = np.count_nonzero(signs, axis=1).astype(np.float64)
        constant[part] = n_pairs == 0
        tau[part] = bounded_ratio(signs @ order, np.sqrt(n_pairs * n_target))
    tau[non_finite] = -np.inf
    return Correlations(tau, constant & ~non_finite, non_finite)


def _kendall_of_many_rows(scores: FloatArray, target_ranks: FloatArray) -> Correlations:
    """The same bit for bit, without a list of all pairs."""
    once = np.ones((1, len(target_ranks)))
    n_target = large_resamples.differing_pairs(once, target_ranks)[0]
    chunk, non_finite = _finite_rows(scores)
    tau, constant = np.zeros(len(scores)), np.zeros(len(scores), dtype=np.bool_)
    for row, keys in enumerate(quantise_keys(chunk)):
        n_pairs = large_resamples.differing_pairs(once, keys)[0]
        alike = large_resamples.concordance(once, keys, target_ranks)
        constant[row] = n_pairs == 0
        # Ordered pairs are twice the pairs, here and under the root.
        tau[row] = bounded_ratio(alike / 2, np.sqrt(np.array([n_pairs / 2 * (n_target / 2)])))[0]
    tau[non_finite] = -np.inf
    return Correlations(tau, constant & ~non_finite, non_finite)


def partial_spearman(scores: FloatArray, targets: FloatArray, given: FloatArray) -> float:
    """Partial rho of scores and targets, controlling for the ranks of a third vector.

    Ranks do not change under a logarithm, so parameters and log parameters give the same value. It
    is 0 if the third vector determines the scores or the targets.
    """
    s, t, g = rank(scores), rank_targets(targets), rank(given)
    st, sg, tg = _pearson(s, t), _pearson(s, g), _pearson(t, g)
    left = (1 - sg * sg) * (1 - tg * tg)
    return float(np.clip((st - sg * tg) / np.sqrt(left), -1, 1)) if left > 1e-12 else 0.0


class GroupedRho(NamedTuple):
    """The mean rho inside groups, weighted by size, and how many groups and architectures count."""

    rho: float
    n_groups: int
    n_archs: int


def within_spearman(
    scores: FloatArray, targets: FloatArray, groups: LabelArray
) -> GroupedRho | None:
    """Rho inside groups of equal labels (n,); None if no group can be measured.

    Groups with fewer than five architectures or with constant targets are skipped; a group in which
    only the scores are constant counts with rho 0.
    """
    total, n_groups, n_archs = 0.0, 0, 0
    for label in np.unique(groups):
        rows = np.flatnonzero(groups == label)
        if len(rows) < LEAST_IN_GROUP or np.ptp(rank_targets(targets[rows])) == 0:
            continue
        total += len(rows) * spearman(scores[rows], targets[rows])
        n_groups, n_archs = n_groups + 1, n_archs + len(rows)
    return GroupedRho(total / n_archs, n_groups, n_archs) if n_groups else None


class OrderedPairs(NamedTuple):
    """The share of pairs that scores order as targets do, ties one half, of how many pairs."""

    share: float
    n: int


def pairs_within(
    scores: FloatArray, targets: FloatArray, groups: LabelArray
) -> OrderedPairs | None:
    """How scores order the pairs of equal labels (n,) whose targets differ; None without such.

    Unlike rho within groups it also reads groups of two.
    """
    score_ranks, target_ranks = rank(scores), rank_targets(targets)
    ordered, n = 0.0, 0
    for label in np.unique(groups):
        rows = np.flatnonzero(groups == label)
        first, second = np.triu_indices(len(rows), 1)
        of_targets, of_scores = (
            np.sign(ranks[rows[first]] - ranks[rows[second]])
            for ranks in (target_ranks, score_ranks)
        )
        differ = of_targets != 0
        ordered += float(np.sum(1 + of_targets[differ] * of_scores[differ])) / 2
        n += int(differ.sum())
    return OrderedPairs(ordered / n, n) if n else None


def top_precision(scores: FloatArray, targets: FloatArray) -> float:
    """The share of the best tenth by score that is in the best tenth by target.

    If ties cross the border, the expected share over all ways of breaking them.
    """
    k = max(1, round(_TOP_SHARE * len(scores)))
    chances = _membership(rank(scores), k) * _membership(rank_targets(targets), k)
    return float(chances.sum() / k)


def _membership(ranks: FloatArray, k: int) -> FloatArray:
    """The chance of each element (n,) to be among the k largest when ties break at random."""
    border = np.sort(ranks)[-k]
    above, tied = ranks > border, ranks == border
    chances: FloatArray = above + tied * ((k - above.sum()) / tied.sum())
    return chances


def _pearson(u: FloatArray, v: FloatArray) -> float:
    """The product-moment correlation of two vectors (n,), 0 if one is constant."""
    u, v = u - u.mean(), v - v.mean()
    return float(bounded_ratio(np.array(u @ v), np.sqrt((u @ u) * (v @ v))))


def _check(scores: FloatArray, target: FloatArray) -> tuple[int, int]:
    if scores.ndim != 2 or target.ndim != 1 or scores.shape[1] != len(target):
        raise FitnessError(
            f"scores {scores.shape} and target {target.shape} do not match (F, n), (n,)"
        )
    if not 2 <= len(target) <= MOST_ARCHS:
        raise FitnessError(f"{len(target)} architectures: a correlation needs 2 to {MOST_ARCHS}")
    return scores.shape[0], scores.shape[1]


def _finite_rows(scores: FloatArray) -> tuple[FloatArray, BoolArray]:
    """The rows as contiguous float64, non-finite rows replaced by zeros, and a mask of those."""
    rows = np.ascontiguousarray(scores, dtype=np.float64)
    # A cheap first check: a sum is finite unless a term is not finite or it overflows.
    with np.errstate(invalid="ignore", over="ignore"):
        suspects = ~np.isfinite(rows.sum(axis=1))
    bad = np.zeros(len(rows), dtype=np.bool_)
    if suspects.any():
        bad[suspects] = ~np.isfinite(rows[suspects]).all(axis=1)
        rows = np.where(bad[:, np.newaxis], 0.0, rows)
    return rows, bad


def bounded_ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """numerator / denominator clipped to [-1, 1], 0 where the denominator is 0; all (F,)."""
    ratio = np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)
    return np.clip(ratio, -1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Stability:
    """Median and least rank correlation of a proxy's scores with those of `n` other seeds."""

    n: int
    median: float
    least: float

    def to_json(self) -> dict[str, Any]:
        """The fields as plain JSON values."""
        return asdict(self)


def stability(scores: FloatArray, others: FloatArray) -> Stability:
    """How far scores (n,) repeat in others (seeds, n); 0 without finite scores on either side."""
    if not np.isfinite(scores).all():
        return Stability(len(others), 0.0, 0.0)
    rhos = spearman_many(np.atleast_2d(others), rank(scores))
    values = np.where(rhos.non_finite, 0.0, rhos.values)
    return Stability(len(values), float(np.median(values)), float(values.min()))


def agreement(scores: FloatArray, repeated: FloatArray) -> FloatArray:
    """The rank correlation (K,) of each row of scores (K, A) with the same row of `repeated`.

    Rows that are not finite or constant have 0.
    """
    finite = np.isfinite(scores).all(axis=1) & np.isfinite(repeated).all(axis=1)
    result = np.zeros(len(scores))
    if finite.any():
        result[finite] = correlate_rows(rank_many(scores[finite]), rank_many(repeated[finite]))
    return result


def correlate_rows(first: FloatArray, second: FloatArray) -> FloatArray:
    """Pearson's correlation (K,) of each row of `first` (K, A) with that of `second`, 0 if flat."""
    first, second = (x - x.mean(axis=1, keepdims=True) for x in (first, second))
    size = np.sqrt((first**2).sum(axis=1) * (second**2).sum(axis=1))
    products = (first * second).sum(axis=1)
    return np.asarray(np.divide(products, size, out=np.zeros(len(first)), where=size > 0))
