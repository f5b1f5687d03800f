"""The batch of the released recipes, by the family of a space."""

from __future__ import annotations

from typing import Any

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
