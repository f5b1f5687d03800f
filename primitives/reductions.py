"""The reductions over positions, each declared once: how values of blocks become one number.

A position is where in a network a value is taken: the embedding, a block, the head. `sum` and
`mean` are the paper's; the others say where a formula looks. A reduction adds up the values of the
blocks it reads and divides by a number; how many blocks there are decides both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from primitives.changes import announce_change
from primitives.errors import DeclarationError, FormulaError, did_you_mean
from primitives.properties import Interval

Reduction = str
End = Literal["embedding", "head"]
_T = TypeVar("_T")
_PROBED = range(1, 65)  # numbers of blocks from which properties are derived


@dataclass(frozen=True, slots=True)
class ReductionFacts:
    """What is declared of a reduction.

    sign: the LaTeX in front of the value, `index`: the LaTeX of the position inside it;
    reads: the blocks it reads of n; divisor: what their sum is divided by;
    end: the end it reads instead of blocks. Derived from it: is_single, it is the value at one
    position, so that powers commute with it; reads_all, it reads every block.
    """

    name: Reduction
    meaning: str
    sign: str
    index: str
    reads: Callable[[int], slice]
    divisor: Callable[[int], int]
    end: End | None
    is_single: bool = field(init=False)
    reads_all: bool = field(init=False)

    def __post_init__(self) -> None:
        is_single = all(self.n_read(n) == self.divisor(n) == 1 for n in _PROBED)
        object.__setattr__(self, "is_single", is_single)
        reads_all = self.end is None and all(self.n_read(n) == n for n in _PROBED)
        object.__setattr__(self, "reads_all", reads_all)

    def select(self, blocks: Sequence[_T]) -> Sequence[_T]:
        """The blocks that the reduction reads, of at least one block."""
        return blocks[self.reads(len(blocks))]

    def combine(self, values: Sequence[float], n_blocks: int) -> float:
        """One number from the values at the positions that `select` gave."""
        return math.fsum(values) / self.divisor(n_blocks)

    def image(self, values: Interval) -> Interval:
        """The range of the result if each position's value lies in `values`."""
        weights = [self.n_read(n) / self.divisor(n) for n in _PROBED]
        if set(weights) == {1.0}:  # one value, or a mean
            return values
        low = min(weights) * values.low if values.low >= 0 else -math.inf
        high = min(weights) * values.high if values.high <= 0 else math.inf
        return Interval(low, high)

    def n_read(self, n_blocks: int) -> int:
        """How many of that many blocks it reads."""
        return len(range(n_blocks)[self.reads(n_blocks)])


POSITION_REDUCTIONS: dict[Reduction, ReductionFacts] = {}
PAPER_REDUCTIONS: tuple[Reduction, ...] = ("sum", "mean")


def reduction(
    name: Reduction,
    meaning: str,
    sign: str,
    index: str,
    *,
    reads: Callable[[int], slice] = lambda n: slice(n),
    divisor: Callable[[int], int] = lambda n: 1,
    end: End | None = None,
) -> ReductionFacts:
    """Declare a reduction over positions; the language knows it from then on."""
    declared = ReductionFacts(name, meaning, sign, index, reads, divisor, end)
    if name in POSITION_REDUCTIONS or not name.isidentifier():
        raise DeclarationError(f"the reduction {name!r} is declared already, or no plain word")
    if any(declared.n_read(n) < 1 or divisor(n) < 1 for n in _PROBED):
        raise DeclarationError(f"{name} must read a block and divide by 1 or more for any number")
    POSITION_REDUCTIONS[name] = declared
    announce_change()
    return declared


def forget_reduction(name: Reduction) -> None:
    """Remove a reduction: for tests and notebooks that declare and redeclare."""
    del POSITION_REDUCTIONS[name]
    announce_change()


def _first(n: int) -> slice:
    return slice(1)


_ELL = r"\ell"
reduction("sum", "the sum over all blocks", r"\sum_{\ell=1}^{L} ", _ELL)
reduction("mean", "the mean over all blocks", r"\frac{1}{L}\sum_{\ell=1}^{L} ", _ELL,
          divisor=lambda n: n)  # fmt: skip
reduction("inner", "the sum over all blocks but the last; of a single block half of it",
          r"\sum_{\ell<L} ", _ELL, reads=lambda n: slice(max(1, n - 1)),
          divisor=lambda n: 2 if n == 1 else 1)  # fmt: skip
reduction("last", "the last block's value", "", "L", reads=lambda n: slice(n - 1, n))
reduction("first", "the first block's value", "", "1", reads=_first)
reduction("embedding", "the value at the embedding", "", "E", reads=_first, end="embedding")
reduction("head", "the value at the head", "", "O", reads=_first, end="head")


def check_reduction(name: str, allowed: Sequence[Reduction] = PAPER_REDUCTIONS) -> Reduction:
    """The name as one of the allowed reductions; raises FormulaError with a hint otherwise."""
    for reduction in allowed:
        if name == reduction:
            return reduction
    starts = " or ".join(f"{reduction}(...)" for reduction in allowed)
    raise FormulaError(
        f"a formula starts with {starts}, not {name!r}; {did_you_mean(name, allowed)}"
    )
