"""The pass over absolute weights as public code has it: LayerNorms kept, every state absolute.

The released recipes of Synflow, LogSynflow (LPZero's table on GPT-2) and of DSS. All parameters and
buffers of a copy of the network are made absolute, a causal mask's negative number too: then tokens
attend to those after them. Images are ones; for tokens the input of the first block is ones plus
the absolute positions. R is the sum of the logits: of the classes, of the head cluster of words,
or, where a model has neither, of the final hidden state (after whose LayerNorm nothing but rounding
is left). Models run with dropout (`released_dropout`). All in float64 on one input as long as
the batch's.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from lpzero.proxies.released_dropout import train_mode_dropout
from lpzero.statistics.inputs import call, main_tensor
from lpzero.statistics.open_attention import open_attention
from lpzero.statistics.trace import first_tensor, trace
from spaces.gpt2.model import Attention

if TYPE_CHECKING:
    from lpzero.proxies.network import Network

MASKED = 1e4  # the absolute value of what the released models add to masked scores


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
