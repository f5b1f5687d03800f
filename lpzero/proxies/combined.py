"""Proxies made of proxies: the sum or product of their scores, or a combination of their ranks.

Ranks are taken among the architectures scored together (equation 6 of ETAS, equation 10 of
T-Razor), so these are the only proxies whose score depends on the other architectures. Blocks are
ranked among all blocks of these architectures, so that their ranks can be compared within one
architecture and between two. `rank-log` adds up the logarithms of ranks divided by their number, as
AZ-NAS does: a low rank costs more than a high one gains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import mul, or_
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.errors import InputError
from lpzero.judgement.ranks import rank
from lpzero.proxies.registry import Needs, Proxy, applies
from lpzero.scores.columns import RANK_OF
from spaces.base import Space

if TYPE_CHECKING:
    from lpzero.proxies.measurements import Measurements

How = Literal["sum", "product", "rank-sum", "rank-mean", "rank-log"]


@dataclass(frozen=True, slots=True)
class Combined:
    """A combination of proxies; every weight is 1 unless given."""

    name: str
    parts: tuple[Proxy, ...]
    how: How
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
    def direction(self) -> int:
        """1: the scores of the parts are already oriented, larger is better."""
        return 1

    @property
    def has_blocks(self) -> bool:
        """Whether every part has; the products of blocks would not add up to the score."""
        return self.how != "product" and all(part.has_blocks for part in self.parts)

    @property
    def is_of_ranks(self) -> bool:
        """Whether the score depends on the other architectures."""
        return self.how not in ("sum", "product")

    def applies_to(self, space: Space[Any]) -> bool:
        """Whether every part applies to the space."""
        return all(applies(part, space) for part in self.parts)

    @property
    def needs(self) -> Needs:
        return reduce(or_, (part.needs for part in self.parts))

    @property
    def definition(self) -> str:
        parts = (
            part.name if weight == 1 else f"{weight:g} {part.name}"
            for weight, part in zip(self._weights, self.parts, strict=True)
        )
        return f"{self.how}({', '.join(parts)})"

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
            by_block = getattr(part, "block_scores", None)
            if by_block is None:
                raise InputError(f"proxy {part.name} has no values of single blocks")
            found = by_block(space, archs, measurements)
            if self.how != "sum" and found:
                ends = np.cumsum([len(values) for values in found])[:-1]
                found = np.split(self._term(np.concatenate(found)), ends)
            totals = [t + weight * values for t, values in zip(totals, found, strict=True)]
        share = sum(self._weights) if self.how == "rank-mean" else 1.0
        return [values / share for values in totals]


@dataclass(frozen=True, slots=True)
class RankShare:
    """The rank of a proxy's score among the architectures scored together, divided by their number.

    It is what a column that is used as ranks stands for (`lpzero.scores.columns.as_ranks`).
    """

    part: Proxy
    direction: int = 1
    has_blocks: bool = False

    @property
    def name(self) -> str:
        return f"{RANK_OF}{self.part.name}"

    @property
    def needs(self) -> Needs:
        return self.part.needs

    @property
    def paper(self) -> str:
        return self.part.paper

    @property
    def definition(self) -> str:
        return f"rank of {self.part.name} among the architectures, divided by their number"

    def applies_to(self, space: Space[Any]) -> bool:
        """Whether the ranked proxy does."""
        return applies(self.part, space)

    def score(
        self, space: Space[Any], archs: Sequence[Any], measurements: Measurements
    ) -> FloatArray:
        return _ranks(self.part.score(space, archs, measurements)) / len(archs)


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
