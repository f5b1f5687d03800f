"""The ends of a model: the embedding before its first block and the head after the last one.

A model with a method `ends()` says which weights each end has, as taps say where the statistics of
its blocks are. Its forward pass must give the final hidden state, which the head reads. Weights of
an end are seen features x the rest (words, positions, pixels, classes), so that cutting the last
axis bounds them however long a vocabulary is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from torch import Tensor

from spaces.base import EMBEDDING, HEAD

__all__ = ["EMBEDDING", "HEAD", "EndWeight", "HasEnds", "table"]


@dataclass(frozen=True, slots=True, eq=False)
class EndWeight:
    """A parameter with at least two axes, of which `features` is the one that becomes the rows."""

    parameter: Tensor
    features: int = 0

    def matrix(self, tensor: Tensor) -> Tensor:
        """The parameter, or its gradient, in two dimensions: features x everything else."""
        return tensor.movedim(self.features, 0).flatten(1)


@runtime_checkable
class HasEnds(Protocol):
    """A model that names the weights of its ends."""

    def ends(self) -> Mapping[str, Sequence[EndWeight]]:
        """The weights of `embedding` and `head`; an end without matrices has none."""


def table(parameter: Tensor) -> EndWeight:
    """The weights of a table that is stored (words, features), seen features x words."""
    return EndWeight(parameter, features=parameter.ndim - 1)
