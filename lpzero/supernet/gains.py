"""What a choice in a layer is worth: layer-normalised SNIP, averaged over passes of the supernet.

The order of these values decides which isomer of a group is elected (equation 13 of PreNAS). With
other weights they come out differently, so several passes can be averaged, and `agreement` says how
alike the passes are.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.errors import InputError
from lpzero.judgement.correlation import spearman
from lpzero.supernet.saliency import Saliency
from spaces.base import Space
from spaces.sharing import WeightSharing


@dataclass(frozen=True, eq=False)
class Gains:
    """One or more passes of the same space, each with its own weights."""

    passes: tuple[Saliency, ...]

    def __post_init__(self) -> None:
        if not self.passes:
            raise InputError("gains need at least one pass of the supernet")

    @classmethod
    def of(cls, given: Saliency | Gains) -> Gains:
        """The gains of one pass, or those given."""
        return given if isinstance(given, Gains) else cls((given,))

    @property
    def space(self) -> Space[Any]:
        return self.passes[0].space

    @property
    def sharing(self) -> WeightSharing[Any]:
        return self.passes[0].sharing

    def table(self, factor: str, width: Any, depth: int) -> FloatArray:
        """The value of each choice of the factor in each layer (depth, choices)."""
        found = [one.table(factor, width, depth) / one.totals[:depth, None] for one in self.passes]
        mean: FloatArray = np.mean(found, axis=0)
        return mean

    def steps(self, factor: str) -> FloatArray:
        """What each next choice of the factor adds in each layer of the largest frame (n,)."""
        width, depth = max(self.sharing.frames())
        return np.diff(self.table(factor, width, depth), axis=1).reshape(-1)

    def agreement(self) -> float | None:
        """The mean rho of the steps between two passes, over factors; None for one pass.

        Factor by factor, because heads gain more than ratios in every layer of every pass.
        """
        if len(self.passes) < 2:
            return None
        return agreement([Gains((one,)) for one in self.passes])


def agreement(sets: Sequence[Gains]) -> float:
    """The mean rho of the steps between two of the sets, over factors."""
    found = [mean_rho([gains.steps(factor) for gains in sets]) for factor in sets[0].sharing.parts]
    return float(np.mean(found))


def mean_rho(vectors: Sequence[FloatArray]) -> float:
    """The mean of Spearman's rho over pairs of vectors (n,), of which there are at least two."""
    return float(np.mean([spearman(*pair) for pair in itertools.combinations(vectors, 2)]))
