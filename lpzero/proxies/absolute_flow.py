"""Gradients of the sum of outputs under absolute weights and an input of ones.

Equation 11 of T-Razor: only products of absolute weights matter. LayerNorms are left out of this
pass, because the sum of what a LayerNorm gives has no gradient. Instead a block sees its input
divided by the largest element, a constant that its output is multiplied with again: a linear block
would not notice, and attention does not overflow where the products of many blocks leave float32.
In float64; one sequence as long as the batch's, the tokens do not matter. What is one are the
pixels of an image, which goes through the absolute weights of the model's `embedding` (T-Razor,
section IV-A), or else what enters the first block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from lpzero.statistics.trace import first_tensor, without_norms

if TYPE_CHECKING:
    from lpzero.proxies.network import Network


def gradients(network: Network) -> list[list[Tensor]]:
    """Of each block's matrices, in two dimensions."""
    positive = [
        {
            name: parameter.detach().abs().double().requires_grad_(parameter.ndim >= 2)
            for name, parameter in block.named_parameters()
        }
        for block in network.blocks
    ]
    x = _entering(network)
    with without_norms(network.blocks):
        for block, parameters in zip(network.blocks, positive, strict=True):
            scale = x.detach().abs().max()
            x = scale * first_tensor(torch.func.functional_call(block, parameters, (x / scale,)))
    wanted = [p for parameters in positive for p in parameters.values() if p.ndim >= 2]
    found = iter(torch.autograd.grad(x.sum(), wanted, materialize_grads=True))
    return [[next(found).flatten(1) for _ in block] for block in network.matrices]


def _entering(network: Network) -> Tensor:
    """What the first block takes in (1, T, d)."""
    embedding = getattr(network.model, "embedding", None)
    if network.tokens.is_floating_point() and isinstance(embedding, nn.Module):
        positive = {n: p.detach().abs().double() for n, p in embedding.named_parameters()}
        image = torch.ones_like(network.tokens[:1], dtype=torch.float64)
        return first_tensor(torch.func.functional_call(embedding, positive, (image,)))
    return torch.ones(1, *network.entry, dtype=torch.float64, device=network.device)
