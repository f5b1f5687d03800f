"""What a model states about itself: where a statistic can be read, and which weights its ends have.

A block passes a tensor through `Tap("A")` where an FFN activation comes out, `Tap("H")` where a
projection feeds the heads, `Tap("S")` where probabilities come out. A tap does nothing by
itself; extraction hooks it and rejects names that are not declared statistics. So no code outside
a model depends on how the model is built.

The ends are the embedding before the first block and the head after the last one. A model with a
method `ends()`, which maps the two names to lists of `EndWeight`, says which weights each end has.
Its forward pass must give the final hidden state, which the head reads. Weights of an end are seen
features x the rest (words, positions, pixels, classes), so that cutting the last axis bounds them
however long a vocabulary is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import ismethod

from torch import Tensor, nn

from spaces.base import EMBEDDING, HEAD

__all__ = ["EMBEDDING", "HEAD", "EndWeight", "StateTap", "Tap", "ends_of", "table"]


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


@dataclass(frozen=True, slots=True, eq=False)
class EndWeight:
    """A parameter with at least two axes, of which `features` is the one that becomes the rows."""

    parameter: Tensor
    features: int = 0

    def matrix(self, tensor: Tensor) -> Tensor:
        """The parameter, or its gradient, in two dimensions: features x everything else."""
        return tensor.movedim(self.features, 0).flatten(1)


def ends_of(model: nn.Module) -> Mapping[str, Sequence[EndWeight]]:
    """What the model's method `ends` gives: the weights of each end; nothing without the method."""
    named = getattr(model, "ends", None)
    ends: Mapping[str, Sequence[EndWeight]] = named() if ismethod(named) else {}
    return ends


def table(parameter: Tensor) -> EndWeight:
    """The weights of a table that is stored (words, features), seen features x words."""
    return EndWeight(parameter, features=parameter.ndim - 1)
