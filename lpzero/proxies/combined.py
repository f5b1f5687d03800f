"""Proxies made of proxies: the sum or product of their scores, or a combination of their ranks.

Ranks are taken among the architectures scored together (equation 6 of ETAS, equation 10 of
T-Razor), so these are the only proxies whose score depends on the other architectures. Blocks are
ranked among all blocks of these architectures, so that their ranks can be compared within one
architecture and between two. `rank-log` adds up the logarithms of ranks divided by their number, as
AZ-NAS does: a low rank costs more than a high one gains.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import mul
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.errors import InputError
from lpzero.judgement.ranks import rank
from lpzero.proxies.base import Proxy
from lpzero.scores.columns import RANK_OF
from spaces.base import Space

if TYPE_CHECKING:
    from lpzero.proxies.measurements import Measurements

How = Literal["sum", "product", "rank-sum", "rank-mean", "rank-log"]


@dataclass(frozen=True, slots=True)
class Combined(Proxy):
    """A combination of proxies; every weight is 1 unless given."""

    name: str
    parts: tuple[Proxy, ...] = ()
    how: How = "sum"
    weights: tuple[float, ...] = ()
    paper: str = ""

    def __post_init__(self) -> None:
        if self.how not in get_args(How):
            known = ", ".join(get_args(How))
            raise InputError(f"proxies are combined by one of {known}, not {self.how!r}")
        if not self.parts:
            raise InputError(f"{self.name} combines no proxies; name at least one")
        if self.weights and len(self.weights) != len(self.parts):
            given = f"{len(self.weights)} weights for {len(self.parts)} proxies"
            raise InputError(f"{self.name} has {given}")
        if self.how == "product" and self.weights:
            raise InputError(f"{self.name} is a product, which takes no weights")
        if self.how == "rank-mean" and sum(self._weights) == 0:
            raise InputError(f"the weights of {self.name} add up to zero")

    @property
    def _weights(self) -> tuple[float, ...]:
        return self.weights or (1.0,) * len(self.parts)

    @property
    def has_blocks(self) -> bool:
        """Whether every part has; the products of blocks would not add up to the score."""
        return self.how != "product" and all(part.has_blocks for part in self.parts)

    @property
    def is_of_ranks(self) -> bool:
        return self.how not in ("sum", "product")

    @property
    def definition(self) -> str:
        parts = (
            part.name if weight == 1 else f"{weight:g} {part.name}"
            for weight, part in zip(self._weights, self.parts, strict=True)
        )
        return f"{self.how}({', '.join(parts)})"

    def map_leaves(self, change: Callable[[Proxy], Proxy]) -> Proxy:
        return replace(self, parts=tuple(part.map_leaves(change) for part in self.parts))

    def score(
        self, space: Space[Any], archs: Sequence[Any], measurements: Measurements
    ) -> FloatArray:
        found = [part.score(space, archs, measurements) for part in self.parts]
        if self.how == "product":
            return reduce(mul, found)
        total: FloatArray = np.zeros(len(archs))
        for scores, weight in zip(found, self._weights, strict=True):
            total = total + weight * self._term(scores)
        return total / sum(self._weights) if self.how == "rank-mean" else total

    def _term(self, scores: FloatArray) -> FloatArray:
        """What one part adds (n,): its scores, their ranks, or the logarithm of their share."""
        if self.how == "sum":
            return scores
        ranks = _ranks(scores)
        if self.how == "rank-log":
            share: FloatArray = np.log(ranks / len(ranks))
            return share
        return ranks

    def block_scores(
        self, space: Space[Any], archs: Sequence[Any], measurements: Measurements
    ) -> list[FloatArray]:
        """The combined values, or ranks, of each architecture's blocks."""
        if self.how == "product":
            raise InputError(f"proxy {self.name} has no values of single blocks")
        totals: list[FloatArray] = [np.zeros(space.depth(arch)) for arch in archs]
        for part, weight in zip(self.parts, self._weights, strict=True):
            found = part.block_scores(space, archs, measurements)
            if self.how != "sum" and found:
                ends = np.cumsum([len(values) for values in found])[:-1]
                found = np.split(self._term(np.concatenate(found)), ends)
            totals = [t + weight * values for t, values in zip(totals, found, strict=True)]
        share = sum(self._weights) if self.how == "rank-mean" else 1.0
        return [values / share for values in totals]


@dataclass(frozen=True, slots=True)
class RankShare(Proxy):
    """The rank of a proxy's score among the architectures scored together, divided by their number.

    It is what a column that is used as ranks stands for (`lpzero.scores.columns.as_ranks`).
    """

    name: str
    part: Proxy
    is_of_ranks: bool = True

    @property
    def parts(self) -> tuple[Proxy, ...]:
        return (self.part,)

    @property
    def definition(self) -> str:
        return f"rank of {self.part.name} among the architectures, divided by their number"

    def map_leaves(self, change: Callable[[Proxy], Proxy]) -> Proxy:
        return replace(self, part=self.part.map_leaves(change))

    def score(
        self, space: Space[Any], archs: Sequence[Any], measurements: Measurements
    ) -> FloatArray:
        return _ranks(self.part.score(space, archs, measurements)) / len(archs)


def rank_share(part: Proxy) -> RankShare:
    """The rank of the proxy's score, under the name of its column."""
    return RankShare(f"{RANK_OF}{part.name}", part)


def _ranks(scores: FloatArray) -> FloatArray:
    """Average ranks (n,) from 1; all NaN if a score is missing, because ranks would shift."""
    if not np.isfinite(scores).all():
        return np.full(len(scores), np.nan)
    return rank(scores)


def rank_mean(*parts: Proxy, weights: Sequence[float] = ()) -> Combined:
    """The weighted mean of the parts' ranks."""
    return _named(parts, "rank-mean", weights)


def rank_sum(*parts: Proxy, weights: Sequence[float] = ()) -> Combined:
    """The weighted sum of the parts' ranks."""
    return _named(parts, "rank-sum", weights)


def rank_log(*parts: Proxy, weights: Sequence[float] = ()) -> Combined:
    """The weighted sum of the logarithms of the parts' ranks, divided by their number."""
    return _named(parts, "rank-log", weights)


def _named(parts: Sequence[Proxy], how: How, weights: Sequence[float]) -> Combined:
    made = Combined(how, tuple(parts), how, tuple(weights))
    return Combined(made.definition, made.parts, how, made.weights)
