"""The batch of a measure that does not run on the space's own."""

from __future__ import annotations

from typing import Any

from lpzero.proxies.base import Measure
from spaces.base import Space
from spaces.flexibert import FlexiBertSpace
from spaces.gpt2 import Gpt2Space
from spaces.minibatch import Minibatch

_SEQUENCES, _ENCODED = 16, 128


def released_batch(space: Space[Any]) -> Minibatch | None:
    """16 sequences as long as the models read (GPT-2), 128 (encoders), else the space's own."""
    if isinstance(space, Gpt2Space):
        return Minibatch(_SEQUENCES, space.context)
    return Minibatch(_ENCODED) if isinstance(space, FlexiBertSpace) else None


def own_batch(measure: Measure, space: Space[Any]) -> Minibatch | None:
    """The batch that the measure runs on unless another is chosen; None for the space's own."""
    if measure.has_own_batch:
        return released_batch(space)
    is_too_few = space.batch_shape[0] < measure.n_inputs
    return Minibatch(measure.n_inputs) if is_too_few else None
