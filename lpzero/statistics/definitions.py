"""The two readings of what H, W and G are; needs neither torch nor primitives at import.

`ours` are the paper's words: H every projection that feeds the heads, W and G every weight matrix
of a block. `released` is what the authors' code takes of its encoders: of H the first projection
alone (the query's output, or the input of a linear transform), of W and G the Linears of the mixing
operation alone, without its output layer and the FFN. On other models the same rule is applied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lpzero.statistics.errors import StatisticsError

if TYPE_CHECKING:
    from torch import nn

    from lpzero.statistics.layout import Layout

OURS, RELEASED = "ours", "released"
DEFINITIONS = (OURS, RELEASED)
_LINEAR_AXES = 2


def as_released(
    read: Mapping[str, Sequence[Any]], block: nn.Module, layout: Layout
) -> dict[str, Sequence[Any]]:
    """What the statistics of a block read, with H, W and G as the authors' code takes them."""
    from primitives.statistics import STATISTICS  # loads the primitives: not for `lpzero --help`

    wanted = set(map(id, operation_weights(block, layout)))

    def taken(name: str, tensors: Sequence[Any]) -> Sequence[Any]:
        if STATISTICS[name].is_of_weights:
            return [tensor for tensor in tensors if id(tensor) in wanted]
        return tensors[:1] if name == "H" else tensors

    return {name: taken(name, tensors) for name, tensors in read.items()}


def operation_weights(block: nn.Module, layout: Layout) -> list[nn.Parameter]:
    """The weights of the Linears that mix tokens, without the one after the heads."""
    found = [
        weight
        for name, weight in block.named_parameters()
        if weight.ndim == _LINEAR_AXES
        and name.endswith("weight")
        and layout.part(name) == "attention"
        and not any(name.startswith(f"{heads}.") for heads in layout.heads)
    ]
    if not found:
        raise StatisticsError(
            f"{type(block).__name__} has no Linears that mix tokens, which --definitions released"
            " reads as W and G; use --definitions ours"
        )
    return found
