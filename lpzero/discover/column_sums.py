"""Sums of columns as candidates of a campaign: drawn, crossed, mutated, and their neighbours.

A sum is a list of signed summands of a finite stock (`ColumnFacts.summands`), so that variation
exchanges, adds or removes one of them or turns its sign.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from lpzero.discover.language import RandomSource
from lpzero.scores.sums import sum_of
from primitives.formula import Formula

_SIGNS = (1, -1)


class ColumnSums:
    """Sums of 2 to `most` of the summands."""

    def __init__(self, summands: Sequence[Formula], most: int) -> None:
        self.summands, self.most = tuple(summands), most

    @property
    def is_empty(self) -> bool:
        """Whether there is no sum at all."""
        return self.most < 2 or len(self.summands) < 2

    def draw(self, rng: RandomSource) -> Formula | None:
        """A random sum; None if the summands drawn make none."""
        return sum_of([self._part(rng) for _ in range(rng.randint(2, self.most))])

    def crossed(self, first: Sequence[Formula], second: Sequence[Formula]) -> Formula | None:
        """A sum of parts of both."""
        mine = random.sample(first, random.randint(1, min(len(first), self.most - 1)))
        room = self.most - len(mine)
        return sum_of([*mine, *random.sample(second, random.randint(1, min(len(second), room)))])

    def mutated(self, parts: Sequence[Formula]) -> Formula | None:
        """The sum with one part exchanged, turned, added or removed."""
        at = random.randrange(len(parts))
        rest = [*parts[:at], *parts[at + 1 :]]
        changed = random.choice(
            (
                [*rest, -parts[at]],
                [*rest, self._part(random)],
                [*parts, self._part(random)][: self.most],
                rest,
            )
        )
        return sum_of(changed)

    def neighbours(self, parts: Sequence[Formula]) -> Iterator[Formula]:
        """Every sum one change away."""
        changed: list[list[Formula]] = []
        for at, part in enumerate(parts):
            rest = [*parts[:at], *parts[at + 1 :]]
            changed += [rest, [*rest, -part]]
            changed += [[*rest, other.with_sign(part.sign)] for other in self.summands]
        if len(parts) < self.most:
            changed += [[*parts, s.with_sign(sign)] for s in self.summands for sign in _SIGNS]
        for formula in map(sum_of, changed):
            if formula is not None:
                yield formula

    def _part(self, rng: RandomSource) -> Formula:
        sign = rng.choice(_SIGNS)
        return rng.choice(self.summands).with_sign(sign)
