"""Gradients of the sum of outputs under absolute weights and an input of ones.

Equation 11 of T-Razor: only products of absolute weights matter. LayerNorms are removed for this
pass, because the sum of a LayerNorm's outputs has no gradient. Instead each block's input is
divided by its largest element and the block's output is multiplied by it again: this does not
change a linear block, and it keeps attention from overflowing where the products of many blocks
exceed float32. Runs in float64 on one sequence as long as the batch's. The ones are the pixels of
an image that passes through the absolute weights of the model's `embedding` (T-Razor, section
IV-A), or the input of the first block where there is no image.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from lpzero.statistics.inputs import main_tensor
from lpzero.statistics.trace import first_tensor, without_norms

if TYPE_CHECKING:
    from lpzero.proxies.network import Network


def gradients(network: Network) -> list[list[Tensor]]:
    """The gradients of each block's matrices, in two dimensions."""
    positive = [
        {
            name: parameter.detach().abs().double().requires_grad_(parameter.ndim >= 2)
            for name, parameter in block.named_parameters()
        }
        for block in network.blocks
    ]
    x, calls = _first_input(network), network.opening.calls
    with without_norms(network.blocks):
        for block, parameters, call in zip(network.blocks, positive, calls, strict=True):
            scale = x.detach().abs().max()
            state = parameters | _double_buffers(block)
            arguments = call.arguments(x / scale)
            x = scale * first_tensor(torch.func.functional_call(block, state, *arguments))
    wanted = [p for parameters in positive for p in parameters.values() if p.ndim >= 2]
    found = iter(torch.autograd.grad(x.sum(), wanted, materialize_grads=True))
    return [[next(found).flatten(1) for _ in block] for block in network.matrices]


def _first_input(network: Network) -> Tensor:
    """The input of the first block (1, T, d)."""
    embedding, one = getattr(network.model, "embedding", None), main_tensor(network.tokens[:1])
    if one.is_floating_point() and isinstance(embedding, nn.Module):
        positive = {n: p.detach().abs().double() for n, p in embedding.named_parameters()}
        positive |= _double_buffers(embedding)
        image = torch.ones_like(one, dtype=torch.float64)
        return first_tensor(torch.func.functional_call(embedding, positive, (image,)))
    return torch.ones(1, *network.entry, dtype=torch.float64, device=network.device)


def _double_buffers(module: nn.Module) -> dict[str, Tensor]:
    """What the module's BatchNorms have seen, in float64."""
    return {n: b.double() for n, b in module.named_buffers() if b.is_floating_point()}
