"""The reductions over positions: how the values of blocks, or of an end, become one number.

A position is where in a network a value is taken: the embedding, a block, the head. `sum` and
`mean` are the paper's; the others say where a formula looks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from primitives.errors import FormulaError, did_you_mean
from primitives.properties import Interval

Reduction = Literal["sum", "mean", "inner", "last", "first", "embedding", "head"]
End = Literal["embedding", "head"]
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class ReductionFacts:
    """What is declared of a reduction.

    sign: the LaTeX in front of the value, `index`: the LaTeX of the position inside it;
    end: the end it reads instead of blocks; least_weight: the least factor a value counts with;
    is_single: it reads one position, so that element-wise operations commute with it.
    """

    name: Reduction
    meaning: str
    sign: str
    index: str
    end: End | None = None
    least_weight: float = 1.0
    is_single: bool = False

    def select(self, blocks: Sequence[_T]) -> Sequence[_T]:
        """The blocks that the reduction reads, of at least one block."""
        if self.name == "inner" and len(blocks) > 1:
            return blocks[:-1]
        if self.name in ("last", "first"):
            return blocks[-1:] if self.name == "last" else blocks[:1]
        return blocks

    def combine(self, values: Sequence[float], n_blocks: int) -> float:
        """One number from the values at the positions that `select` gave."""
        total = math.fsum(values)
        if self.name == "mean":
            return total / len(values)
        return total / 2 if self.name == "inner" and n_blocks == 1 else total

    def image(self, values: Interval) -> Interval:
        """The range of the result if each position's value lies in `values`."""
        if self.is_single or self.name == "mean":
            return values
        low = self.least_weight * values.low if values.low >= 0 else -math.inf
        high = self.least_weight * values.high if values.high <= 0 else math.inf
        return Interval(low, high)


_ELL = r"\ell"
_ALL = (
    ReductionFacts("sum", "the sum over all blocks", r"\sum_{\ell=1}^{L} ", _ELL),
    ReductionFacts("mean", "the mean over all blocks", r"\frac{1}{L}\sum_{\ell=1}^{L} ", _ELL),
    ReductionFacts("inner", "the sum over all blocks but the last; of a single block half of it",
                   r"\sum_{\ell<L} ", _ELL, least_weight=0.5),
    ReductionFacts("last", "the last block's value", "", "L", is_single=True),
    ReductionFacts("first", "the first block's value", "", "1", is_single=True),
    ReductionFacts("embedding", "the value at the embedding", "", "E", "embedding",
                   is_single=True),
    ReductionFacts("head", "the value at the head", "", "O", "head", is_single=True),
)  # fmt: skip

POSITION_REDUCTIONS: dict[Reduction, ReductionFacts] = {facts.name: facts for facts in _ALL}
PAPER_REDUCTIONS: tuple[Reduction, ...] = ("sum", "mean")


def check_reduction(name: str, allowed: Sequence[Reduction] = PAPER_REDUCTIONS) -> Reduction:
    """The name as one of the allowed reductions; raises FormulaError with a hint otherwise."""
    for reduction in allowed:
        if name == reduction:
            return reduction
    starts = " or ".join(f"{reduction}(...)" for reduction in allowed)
    raise FormulaError(
        f"a formula starts with {starts}, not {name!r}; {did_you_mean(name, allowed)}"
    )
