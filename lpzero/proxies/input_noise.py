"""Gradients at the first block's input when noise is added to it.

The noise of the public code of "Training-free NAS for RNNs and transformers": an amplitude times
the variance of the inputs over the batch times standard normal numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from lpzero.proxies.network import Network

AMPLITUDES = (0.0, 0.1, 10.0, 100.0)
NOISE = 3  # the random stream of the noise


def amplified(network: Network) -> dict[float, Tensor]:
    """The gradients (B, T, d) under each amplitude; without noise for amplitude 0."""
    inputs = network.passed.inputs[0]
    noise = inputs.var(0, correction=0, keepdim=True) * standard_normal(network, inputs)
    found = {a: gradients_at(network, inputs + a * noise) for a in AMPLITUDES if a}
    return {0.0: network.passed.input_gradients[0]} | found


def standard_normal(network: Network, like: Tensor) -> Tensor:
    """Standard normal numbers of that shape, the same for every call."""
    return torch.from_numpy(network.draw(NOISE).standard_normal(tuple(like.shape))).to(like)


def gradients_at(network: Network, source: Tensor) -> Tensor:
    """The gradients (B, T, d) at the first block's input if it is `source` (B, T, d)."""
    found: list[Tensor] = []
    with network.untouched():
        for start in range(0, len(source), network.chunk):
            part = slice(start, min(start + network.chunk, len(source)))
            seen = network.trace(part, source[part])
            loss = network.part_loss(seen.output, part)
            found += torch.autograd.grad(loss, seen.inputs[:1])
    return torch.cat(found)
