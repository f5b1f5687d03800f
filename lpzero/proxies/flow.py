"""Passes over absolute weights and an input of ones: of the papers, and of public code.

`gradients`, of the sum of outputs (equation 11 of T-Razor): only products of absolute weights
matter. LayerNorms are removed for this pass, because the sum of a LayerNorm's outputs has no
gradient. Instead each block's input is divided by its largest element and the block's output is
multiplied by it again: this does not change a linear block, and it keeps attention from overflowing
where the products of many blocks exceed float32. Runs in float64, or in float32 for a quick
network, on one sequence as long as the batch's. The ones are the pixels of an image that passes
through the absolute weights of the model's `embedding` (T-Razor, section IV-A), or the input of the
first block where there is no image.

`released_flow`, with LayerNorms kept and every state absolute: the released recipes of Synflow,
LogSynflow (LPZero's table on GPT-2) and of DSS. All parameters and buffers of a copy of the network
are made absolute, a causal mask's negative number too: then tokens attend to those after them.
Images are ones; for tokens the input of the first block is ones plus the absolute positions. R is
the sum of the logits: of the classes, of the head cluster of words, or, where a model has neither,
of the final hidden state (after whose LayerNorm nothing but rounding is left). Models run with
dropout (`passes.train_mode_dropout`). All in float64 on one input as long as the batch's.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from lpzero.proxies.passes import train_mode_dropout
from lpzero.statistics.inputs import call, main_tensor
from lpzero.statistics.isolation import open_attention
from lpzero.statistics.trace import BlockCall, first_tensor, trace, without_norms
from spaces.gpt2.model import Attention

if TYPE_CHECKING:
    from lpzero.proxies.network import Network

MASKED = 1e4  # the absolute value of what the released models add to masked scores


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


@dataclass(frozen=True, slots=True)
class FlowedMatrix:
    """An absolute weight and the gradient of R there, both (out, in); its module's full name."""

    name: str
    weight: Tensor
    gradient: Tensor


@dataclass(frozen=True, slots=True)
class ReleasedFlow:
    """The weight matrices of each block, and every Linear of the whole model."""

    blocks: list[list[FlowedMatrix]]
    linears: list[FlowedMatrix]


def released_flow(network: Network) -> ReleasedFlow:
    """The gradients of R at every weight matrix."""
    places = _places(network)
    model = _absolute(network.model)
    modules = dict(model.named_modules())
    blocks = [modules[name] for name in places]
    wanted = {
        f"{place}.{matrix.name}": parameter
        for place, block, matrices in zip(places, blocks, network.matrices, strict=True)
        for matrix, parameter in ((matrix, block.get_parameter(matrix.name)) for matrix in matrices)
    }
    linears = {
        f"{name}.weight": module.weight
        for name, module in modules.items()
        if isinstance(module, nn.Linear)
    }
    wanted |= linears
    dropout = train_mode_dropout(model, network.seed, slice(0, 1))
    with open_attention(model), dropout, torch.enable_grad():
        gradients = torch.autograd.grad(
            _total(network, model, blocks), list(wanted.values()), materialize_grads=True
        )
    found = {
        name: FlowedMatrix(name, weight.detach().flatten(1), gradient.flatten(1))
        for (name, weight), gradient in zip(wanted.items(), gradients, strict=True)
    }
    of_blocks = [
        [found[f"{place}.{matrix.name}"] for matrix in matrices]
        for place, matrices in zip(places, network.matrices, strict=True)
    ]
    return ReleasedFlow(of_blocks, [found[name] for name in linears])


def _places(network: Network) -> list[str]:
    """The name of each block in the model."""
    names = {id(module): name for name, module in network.model.named_modules()}
    return [names[id(block)] for block in network.blocks]


def _absolute(model: nn.Module) -> nn.Module:
    """A copy in float64 and eval mode whose parameters and buffers are absolute."""
    made = copy.deepcopy(model).double().eval()
    with torch.no_grad():
        for tensor in (*made.parameters(), *made.buffers()):
            if tensor.is_floating_point():
                tensor.abs_()
    made.requires_grad_(True)
    for module in made.modules():
        if isinstance(module, Attention):
            module.mask_value = MASKED
    return made


def _total(network: Network, model: Any, blocks: list[nn.Module]) -> Tensor:
    """R, the sum of the logits."""
    one = network.tokens[:1]
    if main_tensor(one).is_floating_point():
        image = torch.ones_like(main_tensor(one), dtype=torch.float64)
        return _logits(model, model(image)).sum()
    words = _word_table(network, model)
    if words is not None:
        with _made_ones(words):
            return _logits(model, call(model, one)).sum()
    T, d = network.entry
    source = torch.ones(1, T, d, dtype=torch.float64, device=network.device)
    position = getattr(model, "position", None)
    if isinstance(position, nn.Embedding):
        source = source + position.weight[:T].detach()
    seen = trace(model, blocks, one, (), lambda _, tensor: tensor, source=source)
    return _logits(model, seen.output).sum()


def _word_table(network: Network, model: nn.Module) -> nn.Embedding | None:
    """The table of words that the layout names at the embedding: the longest one."""
    modules = dict(model.named_modules())
    named = (modules.get(name) for name in network.layout.embedding)
    tables = [found for found in named if isinstance(found, nn.Embedding)]
    return max(tables, key=lambda table: table.num_embeddings, default=None)


@contextmanager
def _made_ones(words: nn.Embedding) -> Iterator[None]:
    """A context in which every word's vector is ones; the model adds what it adds to it."""
    handle = words.register_forward_hook(lambda _, __, output: torch.ones_like(output))
    try:
        yield
    finally:
        handle.remove()


def _logits(model: Any, output: Any) -> Tensor:
    read = getattr(model, "logits", None) or getattr(model, "head_logits", None)
    logits: Tensor = first_tensor(output) if read is None else read(output)
    return logits
