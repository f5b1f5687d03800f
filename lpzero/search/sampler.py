"""Draws architectures from a space, or from a pool, within the constraints.

A pool (a table's architectures) is sampled uniformly. An offspring that is not in the pool is
replaced by the nearest member: the smallest Euclidean distance of standardised features. Features
ignore the order of blocks, so of equally near members the one with the most equal blocks is used,
then the first.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Container, Sequence
from typing import Any

import numpy as np

from lpzero.errors import InputError
from lpzero.search.constraints import LATENCY, Clock, Constraints
from lpzero.search.features import Features
from spaces.base import Space

# Draws in a row without a new architecture before drawing stops.
PATIENCE = 20_000


class Sampler:
    """Draws distinct architectures that the constraints allow.

    `is_known`, if given, is False for architectures that must not be drawn either.
    """

    def __init__(
        self,
        space: Space[Any],
        constraints: Constraints,
        clock: Clock,
        pool: Sequence[Any] | None = None,
        is_known: Callable[[Any], bool] | None = None,
    ) -> None:
        self.space, self.constraints, self.clock = space, constraints, clock
        self._is_known = is_known
        self._allowed: dict[Any, bool] = {}
        self.pool: list[Any] | None = None
        if pool is not None:
            self.pool = [arch for arch in dict.fromkeys(pool) if self.allows(arch)]
            if not self.pool:
                raise InputError("no architecture of the table is within all the bounds")
            self._members = set(self.pool)
            self._features = Features(space, self.pool)
            self._pool_features = self._features(self.pool)

    def allows(self, arch: Any) -> bool:
        """Whether the constraints allow it, and it is of the known part of the space if any."""
        if arch not in self._allowed:
            is_known = self._is_known is None or self._is_known(arch)
            allowed = is_known and self.constraints.allows(self.space, arch, self.clock)
            self._allowed[arch] = allowed
        return self._allowed[arch]

    def without_timing(self) -> Sampler:
        """The same, without the bounds of measured latency."""
        counted = Constraints({k: v for k, v in self.constraints.bounds.items() if k != LATENCY})
        return Sampler(self.space, counted, self.clock, self.pool, self._is_known)

    def sample(self, rng: random.Random) -> Any:
        """A random architecture, within the constraints or not."""
        return self.space.sample(rng) if self.pool is None else rng.choice(self.pool)

    def snap_to_pool(self, arch: Any) -> Any:
        """The nearest architecture of the pool; the architecture itself if there is no pool."""
        if self.pool is None or arch in self._members:
            return arch
        distances = ((self._pool_features - self._features([arch])) ** 2).sum(axis=1)
        nearest = [self.pool[i] for i in np.flatnonzero(distances == distances.min())]
        return max(nearest, key=lambda other: self._n_equal_blocks(arch, other))

    def _n_equal_blocks(self, arch: Any, other: Any) -> int:
        """How many blocks are equal at the same position."""
        pairs = zip(self.space.blocks(arch), self.space.blocks(other), strict=False)
        return sum(mine == theirs for mine, theirs in pairs)

    def draw(
        self,
        n: int,
        make: Callable[[], Any],
        taken: Container[Any] = (),
        patience: int = PATIENCE,
    ) -> list[Any]:
        """Up to n distinct allowed architectures from `make` that are not in `taken`.

        Fewer if many draws in a row give nothing new: the pool or neighbourhood is exhausted.
        """
        found: dict[Any, None] = {}
        misses = 0
        limit = patience if self.pool is None else min(patience, 50 * len(self.pool))
        while len(found) < n and misses < limit:
            arch = self.snap_to_pool(make())
            if arch in found or arch in taken or not self.allows(arch):
                misses += 1
                continue
            found[arch] = None
            misses = 0
        return list(found)
