"""Scores of architectures under any proxy; ranks are taken among all architectures scored so far.

Only what has a score of its own is recorded as a fact: the leaves of a combination, and the terms
and columns of a formula in which a column is used as ranks (rank-of-NAME). Ranks (NTSR, DSS++,
rank-of-NAME) are taken again at each comparison, among everything the search has scored until then:
they do not depend on which architectures were measured together, and scores of one comparison are
comparable, those of different comparisons need not be. Values of blocks are ranked among the blocks
of the compared architectures. An architecture without a score is the worst.

A formula is scored directly on the networks, because storing sketches of everything that a search
tries would take too much space. If the search is restricted to a pool, the formula is scored on
the pool's sketches, which are stored.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.proxies import Needs, Proxy
from lpzero.proxies.base import leaves
from lpzero.search import ledger as facts
from lpzero.search.ledger import Ledger
from spaces.base import Space

if TYPE_CHECKING:
    from lpzero.parallel import Workers
    from lpzero.proxies import Measurements

NO_PROXY = "none"


@dataclass(frozen=True, slots=True)
class NoProxy(Proxy):
    """Random scores: what a search uses without a proxy."""

    seed: int
    name: str = NO_PROXY
    definition: str = "a random number"

    def score(
        self, space: Space[Any], archs: Sequence[Any], measurements: Measurements
    ) -> FloatArray:
        # Seeded by the architecture, so that it does not matter which are scored together.
        draws = [random.Random(f"{self.seed} {space.to_json(arch)}").random() for arch in archs]
        return np.array(draws)


class Scorer:
    """Scores and values of blocks; each leaf's value is computed once."""

    def __init__(
        self,
        proxy: Proxy,
        space: Space[Any],
        measurements: Measurements,
        ledger: Ledger,
        pool: Sequence[Any] | None = None,
    ) -> None:
        self.proxy, self.space, self.ledger = proxy, space, ledger
        self.measurements = measurements
        self.pool = pool
        self.leaves = leaves(proxy)

    @property
    def n_scored(self) -> int:
        return len(self.ledger.archs(facts.SCORE))

    def scores(self, archs: Sequence[Any]) -> FloatArray:
        """The score of each (n,) among all scored so far, these included; -inf if it has none."""
        self.ledger.find(facts.SCORE, archs, self._measure)
        scored = self.ledger.archs(facts.SCORE)
        complete = [a for a in scored if None not in self.ledger.get(facts.SCORE, a)]
        proxy = self._with_values({a: self.ledger.get(facts.SCORE, a) for a in complete})
        values = proxy.score(self.space, complete, self.measurements) if complete else ()
        score = dict(zip(complete, values, strict=True))
        return np.array([score.get(arch, -math.inf) for arch in archs])

    def block_scores(self, archs: Sequence[Any]) -> list[FloatArray]:
        """The values of the blocks of each architecture; all must have a score."""
        self.ledger.find(facts.BLOCKS, archs, self._measure_blocks)
        values = {arch: self.ledger.get(facts.BLOCKS, arch) for arch in archs}
        return self._with_values(values).block_scores(self.space, archs, self.measurements)

    def run_on(self, workers: Workers) -> None:
        """Measure networks on these workers from now on."""
        context = self.measurements.context
        self.measurements = self.measurements.at(replace(context, workers=workers))

    def _measure(self, archs: list[Any]) -> Iterable[list[float | None]]:
        proxies = self._computable
        measures = {measure: None for proxy in proxies for measure in proxy.measures}
        if len(measures) > 1:  # each network is built and run once for all of them
            self.measurements.records(self.space, archs, list(measures))
        columns = [proxy.score(self.space, archs, self.measurements) for proxy in proxies]
        for row in zip(*columns, strict=True):
            yield [float(value) if math.isfinite(value) else None for value in row]

    def _measure_blocks(self, archs: list[Any]) -> Iterable[list[list[float]]]:
        columns = [
            proxy.block_scores(self.space, archs, self.measurements) for proxy in self._computable
        ]
        for row in zip(*columns, strict=True):
            yield [[float(value) for value in values] for values in row]

    @property
    def _computable(self) -> list[Proxy]:
        """The leaves in the form in which they are computed."""
        pool = None if self.pool is None else tuple(self.pool)
        return [
            _on_networks(leaf)
            if pool is None or not leaf.reads_sketches
            else _OnPool(leaf.name, leaf, pool)
            for leaf in self.leaves
        ]

    def _with_values(self, values: Mapping[Any, Sequence[Any]]) -> Proxy:
        """The proxy with every leaf replaced by its measured values."""
        measured: dict[Proxy, Proxy] = {
            leaf: _MeasuredValues(leaf.name, {arch: row[index] for arch, row in values.items()})
            for index, leaf in enumerate(self.leaves)
        }
        return self.proxy.map_leaves(lambda leaf: measured[leaf])


def n_passes(proxy: Proxy) -> int:
    """How often each network is built and run for the proxy's leaves.

    Measures of networks share one, those with a batch of their own another, and a formula that
    needs sketches has its own.
    """
    passes: set[Any] = set()
    for leaf in leaves(proxy):
        measures = _on_networks(leaf).measures
        if measures:
            passes |= {(measure.has_own_batch, measure.n_inputs) for measure in measures}
        elif leaf.needs != Needs.NOTHING:
            passes.add(leaf)
    return len(passes)


def _on_networks(leaf: Proxy) -> Proxy:
    """The leaf as networks are run, unless it has a loss or seeds of its own."""
    return leaf if leaf.needs_sketches else leaf.on_networks()


@dataclass(frozen=True, slots=True)
class _OnPool(Proxy):
    """A proxy scored on the sketches of a whole pool at once."""

    name: str
    proxy: Proxy
    pool: tuple[Any, ...]

    def score(
        self, space: Space[Any], archs: Sequence[Any], measurements: Measurements
    ) -> FloatArray:
        scores = self.proxy.score(space, self.pool, measurements)
        by_arch = dict(zip(self.pool, scores, strict=True))
        return np.array([by_arch[arch] for arch in archs])

    def block_scores(
        self, space: Space[Any], archs: Sequence[Any], measurements: Measurements
    ) -> list[FloatArray]:
        values = self.proxy.block_scores(space, self.pool, measurements)
        by_arch = dict(zip(self.pool, values, strict=True))
        return [by_arch[arch] for arch in archs]


@dataclass(frozen=True, slots=True, eq=False)
class _MeasuredValues(Proxy):
    """A leaf whose scores, or values of blocks, were measured before."""

    name: str
    values: Mapping[Any, Any]

    def score(
        self, space: Space[Any], archs: Sequence[Any], measurements: Measurements
    ) -> FloatArray:
        return np.array([self.values[arch] for arch in archs], dtype=np.float64)

    def block_scores(
        self, space: Space[Any], archs: Sequence[Any], measurements: Measurements
    ) -> list[FloatArray]:
        return [np.array(self.values[arch], dtype=np.float64) for arch in archs]
