"""The ends of a model: the embedding before its first block and the head after the last one.

A model with a method `ends()`, which maps the two names to lists of `EndWeight`, says which weights
each end has, as taps say where the statistics of its blocks are. Its forward pass must give the
final hidden state, which the head reads. Weights of an end are seen features x the rest (words,
positions, pixels, classes), so that cutting the last axis bounds them however long a vocabulary is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import ismethod

from torch import Tensor, nn

from spaces.base import EMBEDDING, HEAD

__all__ = ["EMBEDDING", "HEAD", "EndWeight", "ends_of", "table"]


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
    found: Mapping[str, Sequence[EndWeight]] = named() if ismethod(named) else {}
    return found


def table(parameter: Tensor) -> EndWeight:
    """The weights of a table that is stored (words, features), seen features x words."""
    return EndWeight(parameter, features=parameter.ndim - 1)
