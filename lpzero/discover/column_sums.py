"""Sums of columns as candidates of a campaign: drawn, crossed, mutated, and their neighbours.

A sum is a list of signed summands of a finite stock (`ColumnFacts.summands`), so that variation
exchanges, adds or removes one of them or turns its sign.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from lpzero.discover.language import RandomSource
from lpzero.scores.sums import SignedPart, sum_of
from primitives.score import AnyFormula, ScoreTree

_SIGNS = (1, -1)


class ColumnSums:
    """Sums of 2 to `most` of the summands."""

    def __init__(self, summands: Sequence[ScoreTree], most: int) -> None:
        self.summands, self.most = tuple(summands), most

    @property
    def is_empty(self) -> bool:
        """Whether there is no sum at all."""
        return self.most < 2 or len(self.summands) < 2

    def draw(self, rng: RandomSource) -> AnyFormula | None:
        """A random sum; None if the summands drawn make none."""
        return sum_of([self._part(rng) for _ in range(rng.randint(2, self.most))])

    def crossed(
        self, first: Sequence[SignedPart], second: Sequence[SignedPart]
    ) -> AnyFormula | None:
        """A sum of parts of both."""
        mine = random.sample(first, random.randint(1, min(len(first), self.most - 1)))
        room = self.most - len(mine)
        return sum_of([*mine, *random.sample(second, random.randint(1, min(len(second), room)))])

    def mutated(self, parts: Sequence[SignedPart]) -> AnyFormula | None:
        """The sum with one part exchanged, turned, added or removed."""
        at = random.randrange(len(parts))
        rest = [*parts[:at], *parts[at + 1 :]]
        sign, tree = parts[at]
        changed = random.choice(
            (
                [*rest, (-sign, tree)],
                [*rest, self._part(random)],
                [*parts, self._part(random)][: self.most],
                rest,
            )
        )
        return sum_of(changed)

    def neighbours(self, parts: Sequence[SignedPart]) -> Iterator[AnyFormula]:
        """Every sum one change away."""
        changed: list[list[SignedPart]] = []
        for at, (sign, tree) in enumerate(parts):
            rest = [*parts[:at], *parts[at + 1 :]]
            changed += [rest, [*rest, (-sign, tree)]]
            changed += [[*rest, (sign, other)] for other in self.summands]
        if len(parts) < self.most:
            changed += [[*parts, (sign, one)] for one in self.summands for sign in _SIGNS]
        for made in map(sum_of, changed):
            if made is not None:
                yield made

    def _part(self, rng: RandomSource) -> SignedPart:
        return rng.choice(_SIGNS), rng.choice(self.summands)
