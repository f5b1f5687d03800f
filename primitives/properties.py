"""The properties that a primitive declares.

Pruning, canonical form and enumeration read these properties and nothing else, so a new primitive
is pruned correctly as soon as it is declared. Caches of what follows from declarations are cleared
by `on_change`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """The kind of an expression's value for each tensor of a block."""

    MATRIX = "matrix"
    SCALAR = "scalar"


class Gives(Enum):
    """The kind of a unary primitive's result."""

    SAME = "same"  # element by element: a scalar stays a scalar
    MATRIX = "matrix"  # needs the whole tensor (softmax, zscore): degenerate on a scalar
    SCALAR = "scalar"  # reduces the tensor
    NOTHING = "nothing"  # removes the branch


class Monotone(Enum):
    INCREASING = "increasing"
    DECREASING = "decreasing"


class Symmetry(Enum):
    EVEN = "even"  # f(-x) = f(x)
    ODD = "odd"  # f(-x) = -f(x)


class Blind(Enum):
    """The part of its operand that a primitive ignores."""

    SIGN = "sign"  # f(x) = f(|x|)
    NEGATIVE = "negative"  # f(x) = f(max(x, 0))


class Freedom(Enum):
    """A change of the operand: one primitive makes it, another one ignores it."""

    COLUMN_SHIFT = "column shift"  # x + c, one c for each column
    AFFINE = "affine"  # a·x + b with a > 0


@dataclass(frozen=True, slots=True)
class Interval:
    """All numbers from low to high, both included."""

    low: float = -math.inf
    high: float = math.inf

    def __contains__(self, other: Interval) -> bool:
        return self.low <= other.low and other.high <= self.high

    def __and__(self, other: Interval) -> Interval:
        return Interval(max(self.low, other.low), min(self.high, other.high))

    @property
    def is_point(self) -> bool:
        return self.low == self.high

    @property
    def width(self) -> float:
        return self.high - self.low

    def magnitudes(self) -> Interval:
        """The range of |x|."""
        low = 0.0 if self.low <= 0 <= self.high else min(abs(self.low), abs(self.high))
        return Interval(low, max(abs(self.low), abs(self.high)))

    def positive_part(self) -> Interval:
        """The range of max(x, 0)."""
        return Interval(max(self.low, 0.0), max(self.high, 0.0))


REALS = Interval()
NON_NEGATIVE = Interval(0.0)
UNIT = Interval(0.0, 1.0)
NON_POSITIVE = Interval(high=0.0)


@dataclass(frozen=True, slots=True)
class Undoes:
    """f(g(x)) = x on `domain` mathematically, and bit for bit on `exact`.

    `of_positive`: also for a statistic that is never negative, except where it is exactly zero.
    """

    name: str
    domain: Interval = REALS
    exact: Interval = REALS
    of_positive: bool = False


@dataclass(frozen=True, slots=True)
class DefinedAs:
    """f(x) = the chain applied to x, on `domain`; exact if x spans less than `exact_width`."""

    chain: tuple[str, ...]
    domain: Interval = REALS
    exact_width: float = math.inf


@dataclass(frozen=True, slots=True)
class Traits:
    """Everything that a unary primitive declares besides its body.

    monotone holds on the part of the operand that the primitive sees (`blind`), and at a jump on
    either side of zero; fixes and mirrors are where f(x) = x and f(x) = -x; steady names what, done
    next, no longer depends on the tensor's values (a reduction, or an operation then a mean), with
    the result if it is one number; grows is the power of the element count that a sum scales with.
    """

    gives: Gives = Gives.SAME
    range: Interval = REALS
    monotone: Monotone | None = None
    symmetry: Symmetry | None = None
    blind: Blind | None = None
    fixes: Interval | None = None
    mirrors: Interval | None = None
    undoes: tuple[Undoes, ...] = ()
    defined_as: DefinedAs | None = None
    makes: Freedom | None = None
    ignores: frozenset[Freedom] = frozenset()
    steady: tuple[tuple[str, float | None], ...] = ()
    always_has_zero: bool = False
    jumps_at_zero: bool = False
    grows: float = 0.0


_callbacks: list[Callable[[], None]] = []


def on_change(callback: Callable[[], None]) -> None:
    """Call the function whenever the language changes."""
    _callbacks.append(callback)


def announce_change() -> None:
    """Call every callback."""
    for callback in _callbacks:
        callback()
