"""Sums of weighted features of columns: a beam search over whole populations.

features (D, n), ranked targets (n,)  ->  search: the best sums of 1 to M features, with rho

The weights are fitted in closed form, by least squares on the normal scores of the target. The
correlation of every (sum plus one feature) with these is closed form too; the best few hundred are
ranked exactly, and the best of those make the next beam. A population is an array of features'
numbers (K, M) and one of weights; there is no object per candidate. Shapes: D features, n rows,
K candidates, M members, W kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lpzero.arrays import FloatArray, IntArray
from lpzero.judgement.correlation import spearman_many
from lpzero.scores.column_features import Features
from lpzero.scores.gaussian import normal_scores

MOST_MEMBERS = 24
_WIDTH = 8  # sums that are kept per step of the beam
_EXACT = 64  # extensions of each that are ranked exactly
_UNEXPLAINED = 2e-3  # the least share of a feature that the others must leave unexplained
_RIDGE = 1e-4  # of a feature's variance, added to it where weights are fitted
_GREEDY = 12  # features of the sum whose residual products are to explain
_KEPT = 40  # sums of each number of features
_RANKED = 128  # candidates that are ranked at a time: their scores stay in the cache


class WeightedSum(NamedTuple):
    """Features with the weights of their standardised values, and the exact rho of the sum."""

    members: tuple[int, ...]
    weights: tuple[float, ...]
    rho: float


@dataclass(frozen=True, eq=False)
class Searched:
    """The best sums of each number of features, best first, and how many were ranked exactly."""

    by_size: tuple[tuple[WeightedSum, ...], ...]
    evaluated: int


def standard_scores(ranks: FloatArray) -> FloatArray:
    """The normal scores of ranks (n,), with mean 0 and variance 1 unless all are equal."""
    scores = normal_scores(ranks)
    scores -= scores.mean()
    spread = np.sqrt((scores * scores).mean())
    return np.asarray(scores / spread if spread > 0 else scores)


def search(features: Features, target_ranks: FloatArray, most: int = MOST_MEMBERS) -> Searched:
    """The best sums of 1 to `most` features: by a beam search."""
    space = _Space(features.values, target_ranks)
    best = _Best()
    _beam(space, best, most)
    return Searched(best.sums(space), space.evaluated)


class _Space:
    """The features' values (D, n) with the target: fits and ranks whole populations."""

    def __init__(self, values: FloatArray, target_ranks: FloatArray) -> None:
        self.values, self.target_ranks = values, target_ranks
        self.target = standard_scores(target_ranks)
        self.evaluated = 0

    def rho(self, scores: FloatArray) -> FloatArray:
        """The exact rho (K,) of scores (K, n)."""
        self.evaluated += len(scores)
        return spearman_many(scores, self.target_ranks).values

    def fit(self, members: IntArray) -> FloatArray:
        """The weights (K, M) of sums of features (K, M), of which each member is another."""
        weights = np.empty(members.shape)
        for start in range(0, len(members), _RANKED):
            part = self.values[members[start : start + _RANKED]]  # (k, M, n)
            products = part @ part.transpose(0, 2, 1)
            by_target = part @ self.target
            weights[start : start + _RANKED] = _solve(products, by_target, part.shape[2])
        return weights

    def scores(self, members: IntArray, weights: FloatArray) -> FloatArray:
        """The scores (K, n) of sums of features (K, M) with these weights."""
        return np.asarray(np.matmul(weights[:, np.newaxis, :], self.values[members])[:, 0])


def fit_weights(values: FloatArray, target_ranks: FloatArray) -> FloatArray:
    """The weights (M,) of features (M, n) that a sum with that target has."""
    target = standard_scores(target_ranks)
    values = values - values.mean(axis=1, keepdims=True)
    products, by_target = values @ values.T, values @ target
    return np.asarray(_solve(products[np.newaxis], by_target[np.newaxis], len(target))[0])


def _solve(products: FloatArray, by_target: FloatArray, n: int) -> FloatArray:
    """The weights (K, M) from products of features (K, M, M) and with the target (K, M)."""
    ridged = products + _RIDGE * n * np.eye(products.shape[-1])
    return np.asarray(np.linalg.solve(ridged, by_target[..., np.newaxis])[..., 0])


class _Best:
    """The best populations by number of features: members (K, M), sorted, with rho (K,)."""

    def __init__(self) -> None:
        self.members: dict[int, IntArray] = {}
        self.rho: dict[int, FloatArray] = {}

    def admit(self, members: IntArray, rho: FloatArray) -> None:
        """Keep the best of these and of those that are kept, each once."""
        size = members.shape[1]
        members = np.sort(members, axis=1)
        if size in self.members:
            members = np.concatenate([self.members[size], members])
            rho = np.concatenate([self.rho[size], rho])
        order = np.lexsort((*members.T[::-1], -rho))
        order = order[: 4 * _KEPT]  # repeats of one sum are few
        _, first = np.unique(members[order], axis=0, return_index=True)
        order = order[np.sort(first)][:_KEPT]
        self.members[size], self.rho[size] = members[order], rho[order]

    def sums(self, space: _Space) -> tuple[tuple[WeightedSum, ...], ...]:
        """The sums of each number of features, with their weights."""
        result = []
        for size in sorted(self.members):
            members = self.members[size]
            weights = space.fit(members)
            result.append(
                tuple(
                    WeightedSum(tuple(of), tuple(by), rho)
                    for of, by, rho in zip(
                        members.tolist(), weights.tolist(), self.rho[size].tolist(), strict=True
                    )
                )
            )
        return tuple(result)


def _beam(space: _Space, best: _Best, most: int) -> None:
    """Search sums step by step."""
    values, n = space.values, space.values.shape[1]
    members = np.zeros((1, 0), dtype=np.int64)
    basis = np.zeros((1, 0, n))  # (W, m, n): the members, made orthogonal, each of size sqrt(n)
    on_basis = np.zeros((1, len(values), 0))  # (W, D, m): every feature's part along it
    left = np.ones((1, len(values)))  # (W, D): the share of each feature that is unexplained
    left[:, ~values.any(axis=1)] = 0.0
    for _ in range(most):
        fitted = np.einsum("wmn,wm->wn", basis, basis @ space.target / n)
        by_residual = (space.target - fitted) @ values.T / n  # (W, D)
        usable = left > _UNEXPLAINED
        gain = np.where(usable, by_residual**2 / np.where(usable, left, 1.0), -1.0)
        exact = min(_EXACT * _WIDTH // len(members), len(values))
        picked = np.argpartition(-gain, exact - 1, axis=1)[:, :exact]  # (W, E)
        parent, feature, scores = [], [], []
        for of in range(len(members)):
            added = picked[of][gain[of, picked[of]] > 0]
            beyond = values[added] - on_basis[of, added] @ basis[of]
            weights = by_residual[of, added] / left[of, added]
            scores.append(fitted[of] + weights[:, np.newaxis] * beyond)
            parent.append(np.full(len(added), of))
            feature.append(added)
        parents, added = np.concatenate(parent), np.concatenate(feature)
        if not len(added):
            break
        rhos = space.rho(np.concatenate(scores))
        grown = np.concatenate([members[parents], added[:, np.newaxis]], axis=1)
        best.admit(grown, rhos)
        _, first = np.unique(np.sort(grown, axis=1), axis=0, return_index=True)
        kept = first[np.lexsort((first, -rhos[first]))][:_WIDTH]
        parents, added, members = parents[kept], added[kept], grown[kept]
        beyond = values[added] - np.einsum("wm,wmn->wn", on_basis[parents, added], basis[parents])
        beyond /= np.sqrt(left[parents, added])[:, np.newaxis]
        along = beyond @ values.T / n  # (W, D)
        basis = np.concatenate([basis[parents], beyond[:, np.newaxis]], axis=1)
        on_basis = np.concatenate([on_basis[parents], along[..., np.newaxis]], axis=2)
        left = left[parents] - along**2


def residuals(features: Features, target_ranks: FloatArray) -> list[FloatArray]:
    """The target's normal scores (n,), and what some features of a greedy search leave of them."""
    target = standard_scores(target_ranks)
    values, left = features.values.copy(), target
    n = len(target)
    for _ in range(_GREEDY):
        shares = np.einsum("dn,dn->d", values, values) / n
        usable = shares > _UNEXPLAINED
        gain = np.where(usable, (values @ left) ** 2 / np.where(usable, shares, 1.0), 0.0)
        best = int(np.argmax(gain))
        if not gain[best] > 0:
            break
        unit = values[best] / np.sqrt(shares[best])
        left = left - unit * (unit @ left / n)
        values -= (values @ unit / n)[:, np.newaxis] * unit
    return [target, left]
