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

from primitives.errors import DeclarationError
from primitives.properties import Interval, announce_change

Reduction = str
End = Literal["embedding", "head"]
Body = Callable[[int], tuple[slice, int]]  # of n blocks: those it reads, the divisor of their sum
_T = TypeVar("_T")
_ELL = r"\ell"
_PROBED = range(1, 65)  # numbers of blocks from which properties are derived


@dataclass(frozen=True, slots=True)
class ReductionFacts:
    """What is declared of a reduction.

    sign: the LaTeX in front of the value, `index`: the LaTeX of the position inside it;
    end: the end it reads instead of blocks. Derived from the body: is_single, it is the value at
    one position, so that powers commute with it; reads_all, it reads every block.
    """

    name: Reduction
    meaning: str
    sign: str
    index: str
    end: End | None
    body: Body
    is_single: bool = field(init=False)
    reads_all: bool = field(init=False)

    def __post_init__(self) -> None:
        is_single = all(self.n_read(n) == self.divisor(n) == 1 for n in _PROBED)
        object.__setattr__(self, "is_single", is_single)
        reads_all = self.end is None and all(self.n_read(n) == n for n in _PROBED)
        object.__setattr__(self, "reads_all", reads_all)

    def reads(self, n_blocks: int) -> slice:
        """Which of that many blocks it reads."""
        return self.body(n_blocks)[0]

    def divisor(self, n_blocks: int) -> int:
        """What the sum of the values read is divided by."""
        return self.body(n_blocks)[1]

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
    *, sign: str = "", index: str = _ELL, end: End | None = None
) -> Callable[[Body], ReductionFacts]:
    """Declare a reduction over positions: the decorated body becomes a `ReductionFacts`.

    Its docstring is the meaning. Exported modules copy the body, so it uses builtins only.
    """

    def declare(body: Body) -> ReductionFacts:
        name = body.__name__
        meaning = (body.__doc__ or "").strip()
        declared = ReductionFacts(name, meaning, sign, index, end, body)
        if name in POSITION_REDUCTIONS:
            raise DeclarationError(f"the reduction {name!r} is declared already")
        if any(declared.n_read(n) < 1 or declared.divisor(n) < 1 for n in _PROBED):
            raise DeclarationError(f"{name} must read a block and divide by 1 or more, for any n")
        POSITION_REDUCTIONS[name] = declared
        announce_change()
        return declared

    return declare


def forget_reduction(name: Reduction) -> None:
    """Remove a reduction: for tests and notebooks that declare and redeclare."""
    del POSITION_REDUCTIONS[name]
    announce_change()


@reduction(sign=r"\sum_{\ell=1}^{L} ")
def sum(n: int) -> tuple[slice, int]:
    """the sum over all blocks"""
    return slice(n), 1


@reduction(sign=r"\frac{1}{L}\sum_{\ell=1}^{L} ")
def mean(n: int) -> tuple[slice, int]:
    """the mean over all blocks"""
    return slice(n), n


@reduction(sign=r"\sum_{\ell<L} ")
def inner(n: int) -> tuple[slice, int]:
    """the sum over all blocks but the last; of a single block half of it"""
    return (slice(n - 1), 1) if n > 1 else (slice(1), 2)


@reduction(index="L")
def last(n: int) -> tuple[slice, int]:
    """the last block's value"""
    return slice(n - 1, n), 1


@reduction(index="1")
def first(n: int) -> tuple[slice, int]:
    """the first block's value"""
    return slice(1), 1


@reduction(index="E", end="embedding")
def embedding(n: int) -> tuple[slice, int]:
    """the value at the embedding"""
    return slice(1), 1


@reduction(index="O", end="head")
def head(n: int) -> tuple[slice, int]:
    """the value at the head"""
    return slice(1), 1
