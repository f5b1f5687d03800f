"""Which candidate to train next: the start, then expected improvement by a Gaussian process.

features (n, F), prior (n,), costs (n,)           ->  `Candidates`
the first trainings                               ->  alternately the largest prior and a spread one
trained candidates and their values               ->  expected improvements (n,) of all candidates
the same with costs                               ->  expected growth (n,) of the front's area

The prior is what is known without training: normal scores of the mean rank of all counters, or of
a proxy. Values are normal scores of targets, so that their scale does not matter; trainings that
failed share the lowest place. The process (`lpzero.scores.gaussian`) has the mean 0.8 s and

    k = 4 + 0.25 s s' + p (x.x' / F) + r exp(-|x - x'|^2 / (2 F length^2)), plus noise,

with a factor of all of it that is integrated out under inverse-gamma(2, 2). The expected
improvements of the five hyper-parameters with the largest evidence are averaged.

With costs, known without training, the front of value against cost is what improves. The first
trainings by the prior are then the largest of one bin of costs after another, and a candidate's
improvement is the area that it is expected to add under the front: of every step of the front, the
expected improvement over its height times the length on which the candidate is no dearer.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, stdtr

from lpzero.arrays import FloatArray, IntArray
from lpzero.judgement.ranks import rank, rank_targets
from lpzero.scores.gaussian import (
    Constant,
    Hyperparameters,
    InverseGamma,
    OfFeatures,
    Plane,
    Process,
    Smooth,
    normal_scores,
    one_thread,
)

PRIOR, SPREAD, IMPROVEMENT = "prior", "spread", "improvement"
SLOPE = 0.8
CONSTANT, OF_PRIOR = 4.0, 0.25
PARTS = ((1.0, 0.0), (0.0, 1.0), (1.0, 0.3), (1.0, 1.0), (0.3, 1.0))  # p, r
LENGTHS = (0.5, 1.0, 2.0)
NOISES = (0.001, 0.01, 0.1, 0.3)
FACTOR = InverseGamma(2.0, 2.0)
N_AVERAGED = 5
# Beyond the dearest candidate the front goes on for this share of the costs' range.
BEYOND = 0.1


def _grid() -> tuple[Hyperparameters, ...]:
    """Every kernel with every noise; without a smooth part the length means nothing."""
    found = []
    for plane, smooth in PARTS:
        for length in LENGTHS if smooth else LENGTHS[:1]:
            known = Constant(CONSTANT) + OfFeatures(Plane(OF_PRIOR), -1, None)
            if plane:
                known += OfFeatures(Plane(plane), 0, -1)
            if smooth:
                known += OfFeatures(Smooth(smooth, length), 0, -1)
            found.append(known)
    return tuple(Hyperparameters(*pair) for pair in itertools.product(found, NOISES))


GRID = _grid()


def prior_of(columns: Iterable[FloatArray]) -> FloatArray:
    """The normal scores (n,) of the mean rank in the columns, each (n,); constants add nothing."""
    return normal_scores(rank(np.mean([rank(column) for column in columns], axis=0)))


def values_of(targets: FloatArray) -> FloatArray:
    """The normal scores (n,) of targets (n,); those of failed trainings are -inf, and share one."""
    is_known = np.isfinite(targets)
    n_failed = int((~is_known).sum())
    ranks = np.full(len(targets), (n_failed + 1) / 2)
    ranks[is_known] = n_failed + rank_targets(targets[is_known])
    return normal_scores(ranks)


def front(quality: FloatArray, cost: FloatArray) -> IntArray:
    """The non-dominated rows, cheapest first: quality (n,) is maximised, cost (n,) minimised."""
    order = np.lexsort((-quality, cost))
    kept, best = [], -np.inf
    for row in order:
        if quality[row] > best:
            kept.append(row)
            best = quality[row]
    return np.array(kept, dtype=np.int64)


class Steps(NamedTuple):
    """The heights (S,) to improve on, and on what length each candidate would (S, n)."""

    heights: FloatArray
    lengths: FloatArray


@dataclass(frozen=True, eq=False)
class Candidates:
    """Standardised features (n, F), the prior (n,) of what could be trained, and its costs (n,)."""

    features: FloatArray
    prior: FloatArray
    costs: FloatArray | None = None

    def start(
        self, place: int, trained: Sequence[int], rng: random.Random, n_bins: int = 1
    ) -> tuple[int, str]:
        """The candidate of that place among the first trainings, and why it is chosen."""
        free = np.setdiff1d(np.arange(len(self.prior)), trained)
        if place % 2 == 0:
            if self.costs is not None:
                order = np.argsort(-self.costs, kind="stable")
                of_bin = np.array_split(order, n_bins)[place // 2 % n_bins]
                inside = np.intersect1d(free, of_bin)
                free = inside if len(inside) else free
            return int(free[np.argmax(self.prior[free])]), PRIOR
        low, high = self.features.min(axis=0), self.features.max(axis=0)
        drawn = low + (high - low) * np.array([rng.random() for _ in low])
        distances = ((self.features[free] - drawn) ** 2).sum(axis=1)
        return int(free[np.argmin(distances)]), SPREAD

    def likely(self, trained: Sequence[int], values: FloatArray) -> list[Hyperparameters]:
        """The hyper-parameters with the largest evidence, the largest first."""
        points, means = self._points(trained), SLOPE * self.prior[list(trained)]
        evidence = []
        for kernel, group in itertools.groupby(GRID, key=lambda entry: entry.kernel):
            between = kernel.between(points, points)
            for entry in group:
                process = Process(*entry, points, values, means, between)
                evidence.append((process.evidence_of_scales(FACTOR), entry))
        evidence.sort(key=lambda pair: -pair[0])  # stable: equals keep the order of the grid
        return [entry for _, entry in evidence[:N_AVERAGED]]

    def improvements(
        self,
        trained: Sequence[int],
        values: FloatArray,
        likely: Sequence[Hyperparameters],
    ) -> tuple[FloatArray, FloatArray]:
        """The expected improvements (n,) on what is trained, and the expected values (n,)."""
        points, before = self._points(trained), SLOPE * self.prior[list(trained)]
        every = self._points(range(len(self.prior)))
        steps = self._steps(list(trained), values)
        place, row = np.nonzero(steps.lengths)
        gains, expected = [], []
        for entry in likely:
            process = Process(*entry, points, values, before)
            freedom, factor = process.student(FACTOR)
            means, deviations = process.distributions(every, SLOPE * self.prior)
            expected.append(means)
            ahead = means[row] - steps.heights[place]
            gain = np.zeros(steps.lengths.shape)
            gain[place, row] = expected_improvement(ahead, factor * deviations[row], freedom)
            gains.append((steps.lengths * gain).sum(axis=0))
        return np.mean(gains, axis=0), np.mean(expected, axis=0)

    def _steps(self, trained: list[int], values: FloatArray) -> Steps:
        """What can be improved: the best value, or every step of the front."""
        if self.costs is None:
            return Steps(values.max(keepdims=True), np.ones((1, len(self.prior))))
        low, high = self.costs.min(), self.costs.max()
        shares = (self.costs - low) / ((high - low) or 1.0)
        members = front(values, shares[trained])
        # What is cheaper than all that is trained competes with the worst of it.
        heights = np.concatenate([[values.min()], values[members]])
        edges = np.concatenate([[0.0], shares[trained][members], [1.0 + BEYOND]])
        begins, ends = edges[:-1, np.newaxis], edges[1:, np.newaxis]
        return Steps(heights, np.maximum(ends - np.maximum(shares, begins), 0.0))

    def _points(self, rows: Sequence[int]) -> FloatArray:
        """The features and then the prior (m, F + 1) of some candidates."""
        some = list(rows)
        return np.column_stack([self.features[some], self.prior[some]])


def expected_improvement(ahead: FloatArray, deviation: FloatArray, freedom: float) -> FloatArray:
    """E max(0, ahead + deviation t) for t of Student's distribution, all of them (n,)."""
    scale = np.maximum(deviation, 1e-12)
    z = ahead / scale
    constant = gammaln((freedom + 1) / 2) - gammaln(freedom / 2) - 0.5 * np.log(freedom * np.pi)
    density = np.exp(constant - (freedom + 1) / 2 * np.log1p(z * z / freedom))
    tail = scale * (freedom + z * z) / (freedom - 1) * density
    return np.asarray(ahead * stdtr(freedom, z) + tail)


def choose(
    candidates: Candidates,
    trained: Sequence[int],
    targets: FloatArray,
    n: int,
) -> list[int]:
    """The n candidates to train next, at once.

    After the first, each is chosen as if those before it had the targets that are expected of
    them. Fewer if no more are left.
    """
    values, rows = values_of(targets), list(trained)
    found: list[int] = []
    with one_thread():
        likely = candidates.likely(rows, values)
        while len(found) < n and len(rows) < len(candidates.prior):
            gains, expected = candidates.improvements(rows, values, likely)
            gains[rows] = -np.inf
            found.append(int(np.argmax(gains)))
            rows.append(found[-1])
            values = np.append(values, expected[found[-1]])
    return found
