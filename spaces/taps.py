"""Marks in a model where a statistic can be read.

A block passes a tensor through `Tap("A")` where an FFN activation comes out, `Tap("H")` where a
projection feeds the heads, `Tap("S")` where probabilities come out. A tap does nothing by
itself; extraction hooks it and rejects names that are not declared statistics. So no code outside
a model depends on how the model is built.
"""

from __future__ import annotations

from torch import Tensor, nn


class Tap(nn.Module):
    """The identity, named after a statistic."""

    def __init__(self, statistic: str) -> None:
        super().__init__()
        self.statistic = statistic

    def forward(self, x: Tensor) -> Tensor:
        return x


class StateTap(nn.Module):
    """The identity on the first hidden state of a recurrent layer, called once for each step.

    The loss's gradient at these tensors has the share that comes through later steps, which that at
    the layer's output does not have.
    """

    def forward(self, x: Tensor) -> Tensor:
        return x
