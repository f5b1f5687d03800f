"""Where a search draws architectures from: a space, or a pool of them, within the constraints.

A pool (a table's architectures) is sampled uniformly. What variation gives is moved to the nearest
architecture of the pool: least Euclidean distance of standardised features. Features do not tell
the order of blocks, so among equals the one with the most blocks alike is taken, then the first.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Container, Sequence
from typing import Any

import numpy as np

from lpzero.errors import InputError
from lpzero.search.constraints import Clock, Constraints
from lpzero.search.features import Features
from spaces.base import Space

# Draws in a row that give nothing new before a loop is told that there is no more.
PATIENCE = 20_000


class Sampler:
    """Draws distinct architectures that the constraints allow."""

    def __init__(
        self,
        space: Space[Any],
        constraints: Constraints,
        clock: Clock,
        pool: Sequence[Any] | None = None,
    ) -> None:
        self.space, self.constraints, self.clock = space, constraints, clock
        self._allowed: dict[Any, bool] = {}
        self.pool: list[Any] | None = None
        if pool is not None:
            self.pool = [arch for arch in dict.fromkeys(pool) if self.allows(arch)]
            if not self.pool:
                raise InputError("no architecture of the table is within the bounds together")
            self._members = set(self.pool)
            self._features = Features(space, self.pool)
            self._places = self._features(self.pool)

    def allows(self, arch: Any) -> bool:
        """Whether the constraints allow it."""
        if arch not in self._allowed:
            self._allowed[arch] = self.constraints.allows(self.space, arch, self.clock)
        return self._allowed[arch]

    def sample(self, rng: random.Random) -> Any:
        """An architecture at random, allowed or not."""
        return self.space.sample(rng) if self.pool is None else rng.choice(self.pool)

    def settle(self, arch: Any) -> Any:
        """The architecture itself, or the nearest of the pool."""
        if self.pool is None or arch in self._members:
            return arch
        distances = ((self._places - self._features([arch])) ** 2).sum(axis=1)
        nearest = [self.pool[i] for i in np.flatnonzero(distances == distances.min())]
        return max(nearest, key=lambda other: self._alike(arch, other))

    def _alike(self, arch: Any, other: Any) -> int:
        """How many blocks are equal at the same place."""
        pairs = zip(self.space.blocks(arch), self.space.blocks(other), strict=False)
        return sum(mine == theirs for mine, theirs in pairs)

    def draw(
        self,
        n: int,
        make: Callable[[], Any],
        taken: Container[Any] = (),
        patience: int = PATIENCE,
    ) -> list[Any]:
        """Up to n distinct allowed architectures from `make` that are not taken.

        Fewer if many draws in a row bring nothing new: the pool or the neighbourhood is used up.
        """
        found: dict[Any, None] = {}
        dry = 0
        limit = patience if self.pool is None else min(patience, 50 * len(self.pool))
        while len(found) < n and dry < limit:
            arch = self.settle(make())
            if arch in found or arch in taken or not self.allows(arch):
                dry += 1
                continue
            found[arch] = None
            dry = 0
        return list(found)
