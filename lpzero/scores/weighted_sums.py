"""Sums of weighted features of columns: a beam search and an evolution of whole populations.

features (D, n), ranked targets (n,)  ->  search: the best sums of 1 to M features, with rho

The weights are fitted in closed form, by least squares on the normal scores of the target. The
correlation of every (sum plus one feature) with these is closed form too; the best few hundred are
ranked exactly, and the best of those make the next beam. Evolution exchanges, adds and drops
features of the best sums. A population is an array of features' numbers (K, M) and one of weights;
there is no object per candidate. Shapes: D features, n rows, K candidates, M members, W kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lpzero.arrays import FloatArray, IntArray
from lpzero.judgement.correlation import spearman_many
from lpzero.scores.column_features import Features
from lpzero.scores.gaussian import normal_scores

MOST_MEMBERS = 8
_WIDTH = 8  # sums that are kept per step of the beam
_EXACT = 64  # extensions of each that are ranked exactly
_UNEXPLAINED = 2e-3  # the least share of a feature that the others must leave unexplained
_RIDGE = 1e-4  # of a feature's variance, added to it where weights are fitted
_ACTIVE = 400  # features that evolution draws from
_GENERATIONS, _OFFSPRING = 4, 1200
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


def search(
    features: Features, target_ranks: FloatArray, most: int = MOST_MEMBERS, seed: int = 0
) -> Searched:
    """The best sums of 1 to `most` features: a beam search, then an evolution that starts there."""
    space = _Space(features.values, target_ranks)
    best = _Best()
    active = _beam(space, best, most)
    if len(active) > 1 and most > 1:
        _evolve(space, best, most, active, np.random.default_rng(seed))
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


def _beam(space: _Space, best: _Best, most: int) -> IntArray:
    """Search sums step by step; the features (A,) that extended them best."""
    values, n = space.values, space.values.shape[1]
    members = np.zeros((1, 0), dtype=np.int64)
    basis = np.zeros((1, 0, n))  # (W, m, n): the members, made orthogonal, each of size sqrt(n)
    on_basis = np.zeros((1, len(values), 0))  # (W, D, m): every feature's part along it
    left = np.ones((1, len(values)))  # (W, D): the share of each feature that is unexplained
    left[:, ~values.any(axis=1)] = 0.0
    promise = np.zeros(len(values))
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
            promise[added] = np.maximum(promise[added], gain[of, added])
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
    order = np.lexsort((np.arange(len(values)), -promise))
    return np.asarray(order[: min(_ACTIVE, int((promise > 0).sum()))])


def _evolve(
    space: _Space, best: _Best, most: int, active: IntArray, rng: np.random.Generator
) -> None:
    """Exchange, add and drop features of the best sums, generation by generation."""
    kept = np.unique(np.concatenate([active, *(of.reshape(-1) for of in best.members.values())]))
    values, n = space.values[kept], space.values.shape[1]
    products, by_target = values @ values.T, values @ space.target
    small = _Space(values, space.target_ranks)
    for _ in range(_GENERATIONS):
        for size in range(2, most + 1):
            if size not in best.members:
                continue
            parents = np.searchsorted(kept, best.members[size])
            count = _OFFSPRING // (most - 1)
            members = _offspring(parents, best, size, kept, count, rng)
            if not len(members):
                continue
            weights = _solve(
                products[members[:, :, np.newaxis], members[:, np.newaxis, :]],
                by_target[members],
                n,
            )
            rho = np.concatenate(
                [
                    small.rho(small.scores(members[at : at + _RANKED], weights[at : at + _RANKED]))
                    for at in range(0, len(members), _RANKED)
                ]
            )
            best.admit(kept[members], rho)
    space.evaluated += small.evaluated


def _offspring(
    parents: IntArray, best: _Best, size: int, kept: IntArray, count: int, rng: np.random.Generator
) -> IntArray:
    """New sums (K, size): of the size's own with a feature exchanged, of its neighbours' with one
    added or dropped."""
    made = []
    own = parents[_tournament(rng, len(parents), count)]
    own[np.arange(count), rng.integers(size, size=count)] = rng.integers(len(kept), size=count)
    made.append(own)
    if size - 1 in best.members:
        smaller = np.searchsorted(kept, best.members[size - 1])
        picked = smaller[_tournament(rng, len(smaller), count // 2)]
        made.append(np.column_stack([picked, rng.integers(len(kept), size=count // 2)]))
    if size + 1 in best.members:
        larger = np.searchsorted(kept, best.members[size + 1])
        picked = larger[_tournament(rng, len(larger), count // 4)]
        dropped = rng.integers(size + 1, size=count // 4)
        is_left = np.arange(size + 1) != dropped[:, np.newaxis]
        made.append(picked[is_left].reshape(-1, size))
    members = np.sort(np.concatenate(made), axis=1)
    members = np.unique(members[(np.diff(members, axis=1) > 0).all(axis=1)], axis=0)
    return np.asarray(members)


def _tournament(rng: np.random.Generator, n: int, count: int) -> IntArray:
    """The places (count,) of parents: the better of two drawn, as they are sorted."""
    return np.asarray(rng.integers(n, size=(2, count)).min(axis=0))
