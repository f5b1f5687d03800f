"""What a proxy is: a score of every architecture of a list, larger always better.

Its direction, -1 where the paper wants the quantity small, is declared with it and never fitted to
a table. Most proxies are a function of one built network (`NetworkProxy`) or of sizes alone
(`SizeProxy`); a proxy made of others has them as its `parts`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Flag, auto
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.errors import InputError
from spaces.base import Space

if TYPE_CHECKING:
    from lpzero.proxies.measurements import Context, Measurements
    from lpzero.proxies.network import Network
    from lpzero.sketches.sketch import SketchOptions

Terms = list[list[float]]  # block by block, the terms that add up to the block's value
Function = Callable[["Network"], "float | Terms"]


class Needs(Flag):
    """What must be run or provided to compute a proxy."""

    NOTHING = 0
    FORWARD = auto()
    GRADIENT = auto()
    SECOND_ORDER = auto()
    LABELS = auto()  # the loss, which for language models reads the next tokens
    TAPS = auto()  # the taps of our models, or a `Layout` that names them

    def __str__(self) -> str:
        named = [str(need.name).lower() for need in Needs if need.value and need in self]
        return ", ".join(named).replace("_", " ") or "nothing"


@dataclass(frozen=True, slots=True)
class Measure:
    """A named function of one network; raise the version when its values change.

    `by_block`: it returns terms block by block rather than one number. `has_own_batch`: it runs on
    the batch of the released recipes unless another one is chosen. `n_inputs`: it compares units
    over inputs, and runs on at least that many unless a batch is chosen; a table is ranked by it
    only where it is named, because that costs more than all other proxies together.
    """

    name: str
    function: Function
    version: int = 1
    by_block: bool = False
    has_own_batch: bool = False
    n_inputs: int = 0


class Proxy:
    """The base of every proxy: a subclass has a `name` and `score`, and what differs from here."""

    name: str

    @property
    def parts(self) -> tuple[Proxy, ...]:
        """The proxies whose scores it combines."""
        return ()

    @property
    def needs(self) -> Needs:
        return reduce(or_, (part.needs for part in self.parts), Needs.NOTHING)

    @property
    def paper(self) -> str:
        return ""

    @property
    def definition(self) -> str:
        return ""

    @property
    def direction(self) -> int:
        """1 unless the paper wants the quantity small; scores are oriented already."""
        return 1

    @property
    def has_blocks(self) -> bool:
        """Whether `block_scores` gives the scores of single blocks."""
        return False

    @property
    def reads(self) -> frozenset[str]:
        """The statistics without which it means nothing."""
        return frozenset()

    @property
    def ends(self) -> frozenset[str]:
        """The ends of a network, embedding and head, whose statistics it reads."""
        return frozenset()

    @property
    def only_spaces(self) -> str:
        """Why it cannot score a given model, which is in no space; empty if it can."""
        return ""

    @property
    def chosen_on(self) -> tuple[tuple[str, int | None], ...]:
        """The tables it was found on, each with the split's seed, None if it was on all rows."""
        return ()

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures of single networks that it and its parts consist of."""
        return tuple(measure for part in self.parts for measure in part.measures)

    @property
    def is_measured(self) -> bool:
        """Whether what it costs is what its measures cost."""
        if self.parts:
            return all(part.is_measured for part in self.parts)
        return bool(self.measures) or self.needs == Needs.NOTHING

    @property
    def is_of_ranks(self) -> bool:
        """Whether it ranks its parts among the architectures that are scored together."""
        return False

    @property
    def is_relative(self) -> bool:
        """Whether its score depends on the architectures that are scored together."""
        return self.is_of_ranks or any(part.is_relative for part in self.parts)

    @property
    def reads_sketches(self) -> bool:
        """Whether it is scored on sketches, unless `on_networks` is asked for."""
        return False

    def all_sketching(self, context: Context) -> tuple[SketchOptions, ...]:
        """The options of all sketches that it and its parts are scored on in this context."""
        every = [options for part in self.parts for options in part.all_sketching(context)]
        return tuple(dict.fromkeys(every))

    @property
    def needs_sketches(self) -> bool:
        """Whether it has its own loss or seeds, which `on_networks` does not support."""
        return False

    def applies_to(self, space: Space[Any]) -> bool:
        """Whether the space's networks have what the proxy and its parts read."""
        has_all = not self.reads & space.absent_statistics
        return has_all and all(part.applies_to(space) for part in self.parts)

    def map_leaves(self, change: Callable[[Proxy], Proxy]) -> Proxy:
        """The proxy with everything in it that has a score of its own replaced by its change."""
        return change(self)

    def on_networks(self) -> Proxy:
        """The same scores, up to rounding, computed as each network runs: no sketch is stored."""
        return self

    def on_models(self, definitions: str) -> Proxy:
        """The same proxy on given models, with these definitions of H, W and G in formulas."""
        return self

    def score(
        self, space: Space[Any], archs: Sequence[Any], measurements: Measurements
    ) -> FloatArray:
        """The scores (n,) of the architectures; NaN where an architecture has none."""
        raise NotImplementedError

    def block_scores(
        self, space: Space[Any], archs: Sequence[Any], measurements: Measurements
    ) -> list[FloatArray]:
        """The scores of each architecture's blocks."""
        raise InputError(f"proxy {self.name} has no values of single blocks")


def leaves(proxy: Proxy) -> list[Proxy]:
    """The distinct proxies in it that have scores of their own, in their order."""
    seen: dict[Proxy, None] = {}

    def see(leaf: Proxy) -> Proxy:
        seen[leaf] = None
        return leaf

    proxy.map_leaves(see)
    return list(seen)


@dataclass(frozen=True, slots=True)
class NetworkProxy(Proxy):
    """A measure as a proxy: its sum, or the mean of its terms."""

    name: str
    measure: Measure
    needs: Needs = Needs.FORWARD
    paper: str = ""
    definition: str = ""
    is_mean: bool = False
    direction: int = 1
    reads: frozenset[str] = frozenset()

    @property
    def measures(self) -> tuple[Measure, ...]:
        return (self.measure,)

    @property
    def has_blocks(self) -> bool:
        return self.measure.by_block

    def score(
        self, space: Space[Any], archs: Sequence[Any], measurements: Measurements
    ) -> FloatArray:
        records = measurements.records(space, archs, [self.measure])[self.measure.name]
        scores = [r.score / (r.count if self.is_mean else 1) for r in records]
        return self.direction * np.array(scores, dtype=np.float64)

    def block_scores(
        self, space: Space[Any], archs: Sequence[Any], measurements: Measurements
    ) -> list[FloatArray]:
        """The values of each architecture's blocks, which add up to the score of the sum."""
        records = measurements.records(space, archs, [self.measure])[self.measure.name]
        if any(record.blocks is None for record in records):
            raise InputError(f"proxy {self.name} has no values of single blocks")
        return [self.direction * np.array(r.blocks, dtype=np.float64) for r in records]


@dataclass(frozen=True, slots=True)
class SizeProxy(Proxy):
    """A score from the architecture alone."""

    name: str
    count: Callable[[Space[Any], Any], float]
    paper: str = ""
    definition: str = ""
    reads: frozenset[str] = frozenset()
    only_spaces: str = ""

    def score(
        self, space: Space[Any], archs: Sequence[Any], measurements: Measurements
    ) -> FloatArray:
        return np.array([self.count(space, arch) for arch in archs], dtype=np.float64)
