"""Gradients of the sum of outputs under absolute weights and an input of ones.

Equation 11 of T-Razor: only products of absolute weights matter. LayerNorms are removed for this
pass, because the sum of a LayerNorm's outputs has no gradient. Instead each block's input is
divided by its largest element and the block's output is multiplied by it again: this does not
change a linear block, and it keeps attention from overflowing where the products of many blocks
exceed float32. Runs in float64, or in float32 for a quick network, on one sequence as long as the
batch's. The ones are the pixels of an image that passes through the absolute weights of the model's
`embedding` (T-Razor, section IV-A), or the input of the first block where there is no image.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn

from lpzero.statistics.inputs import main_tensor
from lpzero.statistics.trace import BlockCall, first_tensor, without_norms

if TYPE_CHECKING:
    from lpzero.proxies.network import Network


class BlockFlow(NamedTuple):
    """The gradients of a block's matrices, in two dimensions: the factor times what is here."""

    factor: float
    gradients: list[Tensor]


def gradients(network: Network) -> list[BlockFlow]:
    """The gradients of each block's matrices.

    Blocks are differentiated one by one, because powers of ten are carried beside the numbers:
    x_true = factor * x forwards, and likewise backwards.
    """
    dtype = torch.float32 if network.is_quick else torch.float64
    positive = [
        {
            name: parameter.detach().abs().to(dtype).requires_grad_(parameter.ndim >= 2)
            for name, parameter in block.named_parameters()
        }
        for block in network.blocks
    ]
    x, factor, passes = _first_input(network).to(dtype), 1.0, []
    with without_norms(network.blocks):
        for block, parameters, call in zip(network.blocks, positive, _calls(network), strict=True):
            scale = float(x.abs().max())
            entered = (x / scale).requires_grad_()
            state = parameters | _buffers(block, dtype)
            y = first_tensor(torch.func.functional_call(block, state, *call.arguments(entered)))
            passes.append((parameters, entered, y, scale))
            x, factor = y.detach(), factor * scale
    cotangent, found = torch.ones_like(x), []
    for parameters, entered, y, scale in reversed(passes):
        wanted = [p for p in parameters.values() if p.ndim >= 2]
        *of_matrices, slope = torch.autograd.grad(
            y, [*wanted, entered], cotangent, materialize_grads=True
        )
        found.append(BlockFlow(factor, [g.flatten(1) for g in of_matrices]))
        largest = float(slope.abs().max()) or 1.0
        cotangent, factor = slope / largest, factor * (largest / scale)
    return found[::-1]


def _calls(network: Network) -> list[BlockCall]:
    """How each block is called; a pass finds it out, unless a quick network's blocks take one."""
    if network.is_quick and all(_takes_one(block) for block in network.blocks):
        return [BlockCall()] * len(network.blocks)
    return network.opening.calls


def _takes_one(block: nn.Module) -> bool:
    """Whether the block takes its input and nothing else."""
    parameters = list(inspect.signature(block.forward).parameters.values())
    return len(parameters) == 1 and parameters[0].kind == inspect.Parameter.POSITIONAL_OR_KEYWORD


def _first_input(network: Network) -> Tensor:
    """The input of the first block (1, T, d)."""
    embedding, one = getattr(network.model, "embedding", None), main_tensor(network.tokens[:1])
    if one.is_floating_point() and isinstance(embedding, nn.Module):
        positive = {n: p.detach().abs().double() for n, p in embedding.named_parameters()}
        positive |= _buffers(embedding, torch.float64)
        image = torch.ones_like(one, dtype=torch.float64)
        return first_tensor(torch.func.functional_call(embedding, positive, (image,)))
    return torch.ones(1, *network.entry, dtype=torch.float64, device=network.device)


def _buffers(module: nn.Module, dtype: torch.dtype) -> dict[str, Tensor]:
    """What the module's BatchNorms have seen."""
    return {n: b.to(dtype) for n, b in module.named_buffers() if b.is_floating_point()}
