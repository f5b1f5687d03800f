"""The counters: scores that need no network, only the architecture's sizes.

They are reported next to every proxy, to show whether a proxy is better than counting.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from lpzero.arrays import FloatArray
from spaces.base import EMBEDDING, Space
from spaces.errors import UnknownNameError

if TYPE_CHECKING:
    from spaces.tables.table import Table

# The name, beside the counters, of the best product of sizes that a search of the table found.
BEST_COUNT = "best count"

Counter = Callable[[Space[Any], Any], float]


def parameters(space: Space[Any], arch: Any) -> float:
    """All parameters."""
    return float(space.parameters(arch))


def decoder_parameters(space: Space[Any], arch: Any) -> float:
    """Parameters of the blocks and the final norm."""
    return float(space.decoder_parameters(arch))


def attention_parameters(space: Space[Any], arch: Any) -> float:
    """Parameters of the token-mixing parts of the blocks."""
    return float(space.attention_parameters(arch))


def depth(space: Space[Any], arch: Any) -> float:
    """The number of blocks."""
    return float(space.depth(arch))


def depth_sqrt_width(space: Space[Any], arch: Any) -> float:
    """The number of blocks times the square root of the width."""
    return space.depth(arch) * math.sqrt(space.width(arch))


def flops(space: Space[Any], arch: Any) -> float:
    """Floating-point operations of one forward pass over one sequence."""
    return float(space.flops(arch))


def sept(space: Space[Any], arch: Any, tokens: int | None = None) -> float:
    """The bound of the separation rank, equation 5 of ETAS.

    log(sum_l d_l) + log(sum_l (d_l^(T+1) - 1) / (d_l - 1)) in log space, d_l the width of block
    l; T is the length of the space's batch unless given.
    """
    T = space.batch_shape[1] if tokens is None else tokens
    widths = space.block_widths(arch)
    terms = [_log_geometric_sum(d, T) for d in widths]
    largest = max(terms)
    others = math.log(sum(math.exp(term - largest) for term in terms))
    return math.log(sum(widths)) + others + largest


def _log_geometric_sum(d: int, T: int) -> float:
    """log((d^(T+1) - 1) / (d - 1)) = log(1 + d + ... + d^T), without raising d to the power."""
    if d == 1:
        return math.log(T + 1)
    return (T + 1) * math.log(d) + math.log1p(-(d ** -(T + 1.0))) - math.log(d - 1)


def projections(space: Space[Any], arch: Any) -> float:
    """The number of projections that feed heads, over all blocks."""
    return float(space.projections(arch))


def heads(space: Space[Any], arch: Any) -> float:
    """The number of heads over all blocks."""
    return float(sum(sizes.get("heads", 0) for sizes in space.block_sizes(arch)))


def head_width(space: Space[Any], arch: Any) -> float:
    """The width per head: that of all blocks over the number of their heads; 0 without heads."""
    n_heads = heads(space, arch)
    return sum(space.block_widths(arch)) / n_heads if n_heads else 0.0


def embedding_rank(space: Space[Any], arch: Any) -> float:
    """The rank that embedded inputs can have: the lesser of their width and the first block's."""
    ends, blocks = space.end_sizes(arch), space.block_sizes(arch)
    return float(min(ends[EMBEDDING]["width"], blocks[0]["width"]))


_COUNTERS: dict[str, Counter] = {
    function.__name__.replace("_", "-"): function
    for function in (
        parameters,
        decoder_parameters,
        attention_parameters,
        depth,
        depth_sqrt_width,
        flops,
        sept,
        projections,
        heads,
        head_width,
        embedding_rank,
    )
}
_OF_HEADS = ("heads", "head-width")


def names() -> list[str]:
    """Every counter's name."""
    return list(_COUNTERS)


def get(name: str) -> Counter:
    """The counter of that name."""
    if name not in _COUNTERS:
        raise UnknownNameError("counter", name, _COUNTERS)
    return _COUNTERS[name]


def reads(name: str) -> frozenset[str]:
    """The statistics without which a space's architectures do not have the counter."""
    return frozenset("S" if name in _OF_HEADS else "")


def defined(space: Space[Any]) -> list[str]:
    """The names of the counters that the space's architectures have."""
    return [name for name in _COUNTERS if not reads(name) & space.absent_statistics]


def quick(space: Space[Any]) -> list[str]:
    """The names of those for which no network is run: all, but for a user's space."""
    own: list[str] | None = getattr(space, "quick_counters", None)
    return defined(space) if own is None else own


def factors(table: Table) -> dict[str, FloatArray]:
    """The counters (n,) that may be factors of a product: above zero everywhere, and varying.

    Not those of heads: products have them from the sizes of blocks, as `sum(heads)`.
    """
    every = {name: score(name, table) for name in _COUNTERS if name not in _OF_HEADS}
    return {name: of for name, of in every.items() if (of > 0).all() and np.ptp(of) > 0}


def score(name: str, table: Table) -> FloatArray:
    """The counter of every architecture of the table (n,)."""
    counter = get(name)
    return np.array([counter(table.space, arch) for arch in table.archs], dtype=np.float64)
