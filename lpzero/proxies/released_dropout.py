"""Dropout as the released recipes run it: they leave their models in train mode.

The released GPT-2 drops a tenth of what each residual branch (attention, feed-forward) adds to the
stream, and nothing at the embedding or in the attention probabilities. The released encoder drops a
tenth of its normalised embedding, of its attention probabilities, and of what each residual branch
adds. Our models have no dropout, so hooks apply it. It matters where inputs are ones: the
LayerNorms then divide by the spread that dropout makes between channels, and Synflow of a GPT-2
falls to a third. A given model drops at each `nn.Dropout` that it calls, at that one's rate; what
it drops inside a fused attention is left alone. Models without any, ours of images and recurrent
cells, are left alone too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from spaces.flexibert import model as flexibert
from spaces.gpt2 import model as gpt2

RATE = 0.1
_STREAM = 17  # apart from the streams of other draws from the same seed
# Whose output is dropped in our models: a module of this kind itself, or the named part of it.
_DROPPED: dict[type[nn.Module], str] = {
    gpt2.Attention: "",
    gpt2.FeedForward: "",
    flexibert.Embeddings: "norm",
    flexibert.Attention: "tap_s",
    flexibert.Residual: "dense",
}


@contextmanager
def train_mode_dropout(model: nn.Module, seed: int, part: slice, run: int = 0) -> Iterator[None]:
    """A context in which the model drops out as in train mode.

    `part` of the batch goes through: every input has the same masks however the batch is split.
    `run` tells passes with masks of their own apart.
    """
    handles = [
        place.register_forward_hook(partial(_drop, (seed, _STREAM, run, index), rate, part))
        for index, (place, rate) in enumerate(_places(model))
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _places(model: nn.Module) -> list[tuple[nn.Module, float]]:
    """The modules whose output is dropped, and the share that is."""
    found: list[tuple[nn.Module, float]] = []
    for module in model.modules():
        if type(module) in _DROPPED:
            found.append((module.get_submodule(_DROPPED[type(module)]), RATE))
        elif isinstance(module, nn.Dropout) and module.p > 0:
            found.append((module, module.p))
    return found


def kept(entropy: tuple[int, ...], shape: torch.Size, rate: float = RATE) -> Tensor:
    """One input's mask: 0 where a value is dropped, else 1 over the share that is not."""
    state = np.random.SeedSequence(list(entropy)).generate_state(1, np.uint32)
    generator = torch.Generator().manual_seed(int(state[0]))
    drawn = torch.rand(shape, generator=generator, dtype=torch.float64)
    return (drawn >= rate).double() / (1 - rate or 1.0)  # a rate of 1 drops all there is


def _drop(
    entropy: tuple[int, ...], rate: float, part: slice, _: nn.Module, __: Any, output: Tensor
) -> Tensor:
    places = range(part.start, part.stop)
    if len(output) != len(places):  # of a given model, not one row for each input
        return output * kept(entropy, output.shape, rate).to(output)
    masks = torch.stack([kept((*entropy, i), output.shape[1:], rate) for i in places])
    return output * masks.to(output)
