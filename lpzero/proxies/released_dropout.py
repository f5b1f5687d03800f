"""Dropout as the released recipes run it: they leave their decoders in train mode.

The released GPT-2 drops a tenth of what each residual branch (attention, feed-forward) adds to the
stream, and nothing at the embedding or in the attention probabilities. Our models have no dropout,
so hooks apply it. It matters where inputs are ones: the LayerNorms then divide by the spread that
dropout makes between channels, and Synflow falls to a third. Encoders and images are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from spaces.gpt2.model import Attention, FeedForward

RATE = 0.1
_STREAM = 17  # apart from the streams of other draws from the same seed


@contextmanager
def residual_dropout(model: nn.Module, seed: int, first: int = 0, run: int = 0) -> Iterator[None]:
    """A context in which the residual branches of a GPT-2 are dropped out.

    `first` is the place in the batch of the first input that goes through, so that every input has
    the same masks however the batch is split; `run` tells passes with masks of their own apart.
    """
    branches = [m for m in model.modules() if isinstance(m, (Attention, FeedForward))]
    handles = [
        branch.register_forward_hook(partial(_drop, (seed, _STREAM, run, index), first))
        for index, branch in enumerate(branches)
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def kept(entropy: tuple[int, ...], shape: torch.Size) -> Tensor:
    """One input's mask: 0 where a value is dropped, else 1 over the share that is not."""
    state = np.random.SeedSequence(list(entropy)).generate_state(1, np.uint32)
    generator = torch.Generator().manual_seed(int(state[0]))
    drawn = torch.rand(shape, generator=generator, dtype=torch.float64)
    return (drawn >= RATE).double() / (1 - RATE)


def _drop(entropy: tuple[int, ...], first: int, _: nn.Module, __: Any, output: Tensor) -> Tensor:
    shape = output.shape[1:]
    masks = torch.stack([kept((*entropy, first + i), shape) for i in range(len(output))])
    return output * masks.to(output)
