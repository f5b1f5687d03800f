"""Scores of architectures under any proxy; rank combinations use all architectures scored so far.

Only the leaves of a combination are recorded as facts. A rank combination (NTSR, DSS++) is ranked
again at each comparison, among everything the search has scored until then: scores of one
comparison are comparable, those of different comparisons need not be. Values of blocks are ranked
among the blocks of the compared architectures. An architecture without a score is the worst.

A formula is scored directly on the networks, because storing sketches of everything that a search
tries would take too much space. If the search is restricted to a pool, the formula is scored on
the pool's sketches, which are stored.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.errors import InputError
from lpzero.proxies import Combined, FormulaProxy, Needs, Proxy, find
from lpzero.search import ledger as facts
from lpzero.search.ledger import Ledger
from spaces.base import Space

if TYPE_CHECKING:
    from lpzero.parallel import Workers
    from lpzero.proxies import Measurements
    from lpzero.proxies.registry import Measure

NO_PROXY = "none"


class NoProxy(NamedTuple):
    """Random scores: what a search uses without a proxy."""

    seed: int
    name: str = NO_PROXY
    needs: Needs = Needs.NOTHING
    paper: str = ""
    definition: str = "a random number"
    direction: int = 1
    has_blocks: bool = False

    def score(
        self, space: Space[Any], archs: Sequence[Any], measurements: Measurements
    ) -> FloatArray:
        # Seeded by the architecture, so that it does not matter which are scored together.
        draws = [random.Random(f"{self.seed} {space.to_json(arch)}").random() for arch in archs]
        return np.array(draws)


@runtime_checkable
class Measured(Protocol):
    """A proxy that is computed from one measure of a network."""

    @property
    def measure(self) -> Measure: ...


def find_proxy(text: str, seed: int) -> Proxy:
    """The proxy that the text describes; for `none`, random scores."""
    return NoProxy(seed) if text == NO_PROXY else find(text)


def require_blocks(proxy: Proxy, loop: str) -> None:
    """Raise InputError unless the proxy has values of single blocks."""
    if not proxy.has_blocks:
        raise InputError(
            f"loop {loop} works block by block and proxy {proxy.name} has no values of single"
            " blocks; use one that has, such as dss++, snip or a formula"
        )


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
        self.leaves = list(dict.fromkeys(_leaves(proxy)))
        # Whether a score depends on the other architectures.
        self.is_relative = _is_relative(proxy)

    @property
    def n_scored(self) -> int:
        return len(self.ledger.known(facts.SCORE))

    def scores(self, archs: Sequence[Any]) -> FloatArray:
        """The score of each (n,) among all scored so far, these included; -inf if it has none."""
        self.ledger.find(facts.SCORE, archs, self._measure)
        scored = self.ledger.known(facts.SCORE)
        complete = [a for a in scored if None not in self.ledger.get(facts.SCORE, a)]
        proxy = self._from_known({a: self.ledger.get(facts.SCORE, a) for a in complete})
        found = proxy.score(self.space, complete, self.measurements) if complete else ()
        value = dict(zip(complete, found, strict=True))
        return np.array([value.get(arch, -math.inf) for arch in archs])

    def block_scores(self, archs: Sequence[Any]) -> list[FloatArray]:
        """The values of the blocks of each architecture; all must have a score."""
        self.ledger.find(facts.BLOCKS, archs, self._measure_blocks)
        values = {arch: self.ledger.get(facts.BLOCKS, arch) for arch in archs}
        proxy: Any = self._from_known(values)
        found: list[FloatArray] = proxy.block_scores(self.space, archs, self.measurements)
        return found

    def run_on(self, workers: Workers) -> None:
        """Measure networks on these workers from now on."""
        context = self.measurements.context
        self.measurements = self.measurements.at(replace(context, workers=workers))

    def _measure(self, archs: list[Any]) -> Iterable[list[float | None]]:
        leaves = self._computable
        measures = [leaf.measure for leaf in leaves if isinstance(leaf, Measured)]
        if len(measures) > 1:  # each network is built and run once for all of them
            self.measurements.records(self.space, archs, list(dict.fromkeys(measures)))
        columns = [leaf.score(self.space, archs, self.measurements) for leaf in leaves]
        for row in zip(*columns, strict=True):
            yield [float(value) if math.isfinite(value) else None for value in row]

    def _measure_blocks(self, archs: list[Any]) -> Iterable[list[list[float]]]:
        leaves: Any = self._computable
        columns = [leaf.block_scores(self.space, archs, self.measurements) for leaf in leaves]
        for row in zip(*columns, strict=True):
            yield [[float(value) for value in values] for values in row]

    @property
    def _computable(self) -> list[Proxy]:
        """The leaves in the form in which they are computed."""
        return [self._compute_form(leaf) for leaf in self.leaves]

    def _compute_form(self, leaf: Proxy) -> Proxy:
        if not isinstance(leaf, FormulaProxy):
            return leaf
        if self.pool is not None:
            return _OnPool(leaf, tuple(self.pool))
        return leaf if leaf.needs_sketches else leaf.on_networks()

    def _from_known(self, values: Mapping[Any, Sequence[Any]]) -> Proxy:
        """The proxy with every leaf replaced by its known values."""
        known = {
            leaf: _KnownValues(leaf.name, {arch: row[index] for arch, row in values.items()})
            for index, leaf in enumerate(self.leaves)
        }
        return _replace_leaves(self.proxy, known)


def n_passes(proxy: Proxy) -> int:
    """How often each network is built and run for the proxy's leaves.

    Measures of networks share one, those with a batch of their own another, and a formula that
    needs sketches has its own.
    """
    leaves = [leaf for leaf in dict.fromkeys(_leaves(proxy)) if leaf.needs != Needs.NOTHING]
    return len({_shared_pass(leaf) for leaf in leaves})


def _shared_pass(leaf: Proxy) -> Any:
    if isinstance(leaf, FormulaProxy):
        return leaf if leaf.needs_sketches else (False, 0)
    if isinstance(leaf, Measured):
        return leaf.measure.has_own_batch, leaf.measure.n_inputs
    return leaf


def _leaves(proxy: Proxy) -> Iterator[Proxy]:
    if isinstance(proxy, Combined):
        for part in proxy.parts:
            yield from _leaves(part)
    else:
        yield proxy


def _is_relative(proxy: Proxy) -> bool:
    """Whether ranks are part of its scores."""
    if not isinstance(proxy, Combined):
        return False
    return proxy.how != "sum" or any(map(_is_relative, proxy.parts))


def _replace_leaves(proxy: Proxy, leaves: Mapping[Proxy, Proxy]) -> Proxy:
    if isinstance(proxy, Combined):
        return replace(proxy, parts=tuple(_replace_leaves(part, leaves) for part in proxy.parts))
    return leaves[proxy]


@dataclass(frozen=True)
class _OnPool:
    """A formula scored on the sketches of a whole pool at once."""

    formula: FormulaProxy
    pool: tuple[Any, ...]
    needs: Needs = Needs.NOTHING
    paper: str = ""
    direction: int = 1
    has_blocks: bool = True

    @property
    def name(self) -> str:
        return self.formula.name

    @property
    def definition(self) -> str:
        return self.formula.definition

    def score(
        self, space: Space[Any], archs: Sequence[Any], measurements: Measurements
    ) -> FloatArray:
        known = dict(
            zip(self.pool, self.formula.score(space, self.pool, measurements), strict=True)
        )
        return np.array([known[arch] for arch in archs])

    def block_scores(
        self, space: Space[Any], archs: Sequence[Any], measurements: Measurements
    ) -> list[FloatArray]:
        found = self.formula.block_scores(space, self.pool, measurements)
        known = dict(zip(self.pool, found, strict=True))
        return [known[arch] for arch in archs]


@dataclass(frozen=True, eq=False)
class _KnownValues:
    """A leaf whose scores, or values of blocks, are known."""

    name: str
    values: Mapping[Any, Any]
    needs: Needs = Needs.NOTHING
    paper: str = ""
    definition: str = ""
    direction: int = 1
    has_blocks: bool = True

    def score(
        self, space: Space[Any], archs: Sequence[Any], measurements: Measurements
    ) -> FloatArray:
        return np.array([self.values[arch] for arch in archs], dtype=np.float64)

    def block_scores(
        self, space: Space[Any], archs: Sequence[Any], measurements: Measurements
    ) -> list[FloatArray]:
        return [np.array(self.values[arch], dtype=np.float64) for arch in archs]
