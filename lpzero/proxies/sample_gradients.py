"""Gradients of single sequences, and their summary: kernels, signs, variations.

A set of gradients is a list over sequences of lists over weight matrices; it is large, so only
its summary is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from lpzero.proxies.network import Network

Gradients = list[list[Tensor]]
PROBE = 2  # the random stream of the probe
_PIECE = 1 << 16  # columns that stay in the processor's cache


class Summary(NamedTuple):
    """gram: (B, B) float64; agreement: sum over weights of |sum of signs|; steadiness: for each
    matrix the sum of mean |g| / std g over its weights that vary."""

    gram: Tensor
    agreement: float
    steadiness: list[float]


def of_losses(network: Network) -> Gradients:
    """The gradient of each sequence's own loss."""
    B = len(network.tokens)
    found = []
    for part in _one_by_one(network):
        loss = network.part_loss(network.trace(part).output, part) * B
        found.append(_differentiate(loss, network))
    return found


def of_outputs(network: Network) -> Gradients:
    """The gradient of each sequence's last block output against one probe of random signs.

    The probe is the same for all sequences, so the expected inner products are the tangent
    kernel's traces over tokens and outputs.
    """
    found = []
    for part in _one_by_one(network):
        output = network.trace(part).outputs[-1]
        found.append(_differentiate((output * probe(network, output)).sum(), network))
    return found


def probe(network: Network, output: Tensor) -> Tensor:
    """Random signs (T, d) for the last block's output (B, T, d)."""
    signs = network.draw(PROBE).integers(0, 2, output.shape[1:]) * 2.0 - 1.0
    return torch.from_numpy(signs.astype(np.float64)).to(output)


def gram(gradients: Gradients) -> Tensor:
    """Inner products of the sequences' gradients (B, B), added up in float64."""
    total = torch.zeros(len(gradients), len(gradients), dtype=torch.float64)
    for stack in _by_matrix(gradients):
        total += _products(stack).cpu()
    return total


def _products(stack: Tensor) -> Tensor:
    """stack stack' (B, B) in float64, a piece of the columns (B, elements) at a time."""
    total = torch.zeros(len(stack), len(stack), dtype=torch.float64, device=stack.device)
    for piece in stack.split(_PIECE, dim=1):
        wide = piece.double()
        total += wide @ wide.T
    return total


def summarise(gradients: Gradients) -> Summary:
    """The numbers that proxies need from the gradients."""
    agreement, steadiness = 0.0, []
    for stack in _by_matrix(gradients):
        agreement += float(stack.sign().sum(0).abs().sum())
        spread = (stack - stack.mean(0)).square().mean(0).sqrt()
        ratio = stack.abs().mean(0) / spread
        steadiness.append(float(ratio.where(spread > 0, 0.0).sum(dtype=torch.float64)))
    return Summary(gram(gradients), agreement, steadiness)


def _one_by_one(network: Network) -> Iterator[slice]:
    return (slice(i, i + 1) for i in range(len(network.tokens)))


def _differentiate(value: Tensor, network: Network) -> list[Tensor]:
    return list(torch.autograd.grad(value, network.weights, materialize_grads=True))


def _by_matrix(gradients: Gradients) -> Iterator[Tensor]:
    """(B, elements) for each matrix."""
    for same in zip(*gradients, strict=True):
        yield torch.stack([g.flatten() for g in same])
