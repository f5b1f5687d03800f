"""The sizes of a block: numbers that the architecture states and no network is needed for.

A size is a leaf of an expression like a statistic, but one number per block. Sizes are counts of
at least 1, so every power and logarithm of them is defined. An end without parameters of its own,
such as the head of an encoder, has no `params`: formulas that read them there are rejected.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from primitives.errors import UnknownPrimitiveError, did_you_mean
from primitives.properties import Interval

COUNT = Interval(1.0)


@dataclass(frozen=True, slots=True)
class Size:
    """symbol: its LaTeX letter, indexed by the position; at_ends: embedding and head have it."""

    name: str
    meaning: str
    symbol: str
    at_ends: bool = False
    range: Interval = COUNT


_ALL = (
    Size("params", "parameters of the block", "P", at_ends=True),
    Size("width", "width of the block's residual stream", "d", at_ends=True),
    Size("ffn", "width of the block's feed-forward layer", "f"),
    Size("heads", "attention heads of the block", "h"),
)
SIZES: Mapping[str, Size] = MappingProxyType({size.name: size for size in _ALL})


def get_size(name: str) -> Size:
    """The size of that name."""
    if name not in SIZES:
        raise UnknownPrimitiveError(f"no size {name!r}; {did_you_mean(name, SIZES)}")
    return SIZES[name]
