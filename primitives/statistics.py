"""The leaves of expressions by name: the six statistics of LPZero, section 3.1, and sizes.

A statistic is the value of some tensors of a block, or the loss's gradient at them. Extraction,
sketches, exports and the command line derive their lists from the declarations at the end; sketch
files hold the statistics in this order.

A size is a number that the architecture states and no network is needed for. Sizes are counts of
at least 1, so every power and logarithm of them is defined. An end without parameters of its own,
such as the head of an encoder, has no `params`: formulas that read them there are rejected.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from primitives.errors import DeclarationError, look_up
from primitives.properties import REALS, UNIT, Interval, announce_change


class StatisticSource(Enum):
    """Which tensors of a block a statistic reads."""

    TAP = "tap"  # those that pass the model's taps of the statistic's name
    INPUT = "input"  # the block's input
    WEIGHTS = "weights"  # the block's parameters with at least two axes


@dataclass(frozen=True, slots=True)
class Statistic:
    """Tensors of a block, or the loss's gradient at them, with the range of their elements.

    Statistics of one `group` are aligned: their tensors in a block correspond one to one.
    `at_ends`: the embedding and the head have it too.
    """

    name: str
    meaning: str
    group: str
    range: Interval
    source: StatisticSource
    is_gradient: bool
    at_ends: bool = False

    @property
    def is_of_weights(self) -> bool:
        """Whether its tensors have the shapes of weights, whatever the batch.

        In two dimensions these are (out, everything else) and the gradients of parts of a batch
        add up. Other tensors are (everything else, features) and grow along the batch.
        """
        return self.source is StatisticSource.WEIGHTS


_statistics: dict[str, Statistic] = {}
STATISTICS: Mapping[str, Statistic] = MappingProxyType(_statistics)


def statistic(
    name: str,
    meaning: str,
    *,
    group: str | None = None,
    range: Interval = REALS,
    source: StatisticSource = StatisticSource.TAP,
    is_gradient: bool = False,
    at_ends: bool = False,
) -> Statistic:
    """Declare a statistic; without a group it is aligned with no other one."""
    if name in _statistics:
        raise DeclarationError(f"the statistic {name!r} is declared twice; rename one of them")
    _statistics[name] = Statistic(name, meaning, group or name, range, source, is_gradient, at_ends)
    announce_change()
    return _statistics[name]


def get_statistic(name: str) -> Statistic:
    """The statistic of that name."""
    return look_up("statistic", name, _statistics)


def gradient_statistics() -> frozenset[str]:
    """The names of the statistics that need a backward pass."""
    return frozenset(name for name, statistic in _statistics.items() if statistic.is_gradient)


def forget_statistic(name: str) -> None:
    """Remove a statistic: for tests and notebooks that declare and redeclare."""
    _statistics.pop(name, None)
    announce_change()


statistic("A", "FFN activation outputs, tokens x features", at_ends=True)
statistic(
    "J",
    "gradient of the loss at the block's input, tokens x features",
    source=StatisticSource.INPUT,
    is_gradient=True,
    at_ends=True,
)
statistic(
    "G",
    "gradients of the weight matrices",
    group="weights",
    source=StatisticSource.WEIGHTS,
    is_gradient=True,
    at_ends=True,
)
statistic("H", "projections feeding the heads, tokens x features")
statistic("W", "weight matrices", group="weights", source=StatisticSource.WEIGHTS, at_ends=True)
statistic("S", "attention probabilities, (heads x queries) x keys", range=UNIT)

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
