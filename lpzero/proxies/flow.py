"""Passes over absolute weights and an input of ones: of the papers, and of public code.

`backwards`, of the sum of outputs (equation 11 of T-Razor): only products of absolute weights
matter. LayerNorms are removed for this pass, because the sum of a LayerNorm's outputs has no
gradient. Instead each block's input is divided by its largest element and the block's output is
multiplied by it again: this does not change a linear block, and it keeps attention from overflowing
where the products of many blocks exceed float32. The factors are carried beside the numbers with
exponents of any size, and what exceeds float64 in the end is compressed to the top of its range, in
its order (`in_range`). Runs in float64, or in float32 for a quick network, on one sequence as long
as the batch's. Of a large network one block at a time is copied and run: forwards, and again when
its gradients are read. The ones are the pixels of an image that passes
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
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from lpzero.proxies.passes import train_mode_dropout
from lpzero.statistics.inputs import call, main_tensor
from lpzero.statistics.isolation import open_attention
from lpzero.statistics.trace import BlockCall, first_tensor, trace, without_norms
from spaces.gpt2.model import Attention

if TYPE_CHECKING:
    from lpzero.proxies.network import Network, WeightMatrix

V = TypeVar("V")
MASKED = 1e4  # the absolute value of what the released models add to masked scores


_SMALL = 1 << 28  # bytes of absolute weights up to which the gradients of all blocks are held
TOP = 1023  # the exponent of 2 from which on sums are compressed


class Scaled(NamedTuple):
    """The number value * 2 ** exponent."""

    value: float
    exponent: int = 0

    def times(self, factor: float) -> Scaled:
        value, exponent = math.frexp(self.value * factor)
        return Scaled(value, exponent + self.exponent)

    def to_float(self) -> float:
        return math.ldexp(self.value, self.exponent)

    def log(self) -> float:
        """The natural logarithm of a positive number."""
        return math.log(self.value) + self.exponent * math.log(2)


def in_range(terms: Sequence[Sequence[Scaled]]) -> list[list[float]]:
    """The terms as floats; if their sum exceeds these, all are divided by the same number.

    That number makes the sum one at the top of the range, the larger the larger the true sum is.
    """
    every = [term for block in terms for term in block if term.value and math.isfinite(term.value)]
    largest = max((t.exponent + math.frexp(t.value)[1] for t in every), default=0)
    share = math.fsum(abs(math.ldexp(t.value, t.exponent - largest)) for t in every)
    excess = largest + math.log2(share) - TOP if every else 0.0
    if excess <= 0:
        return [[term.to_float() for term in block] for block in terms]
    compressed = math.ldexp(1.9 - 0.9 / (1 + excess), TOP)
    return [
        [math.ldexp(t.value, t.exponent - largest) / share * compressed for t in block]
        for block in terms
    ]


class BlockFlow(NamedTuple):
    """The gradients of a block's matrices, in two dimensions: the factor times what is here."""

    factor: Scaled
    gradients: list[Tensor]


def read_blocks(
    network: Network, read: Callable[[Sequence[WeightMatrix], BlockFlow], V]
) -> list[V]:
    """What `read` gives for the matrices of each block and their gradients.

    A small network's gradients are shared with other proxies; else each block's are released when
    they are read.
    """
    if _is_small(network):
        return [read(*pair) for pair in zip(network.matrices, network.flowed, strict=True)]
    with network.untouched():
        pairs = zip(reversed(network.matrices), backwards(network), strict=True)
        return [read(*pair) for pair in pairs][::-1]


def _is_small(network: Network) -> bool:
    numbers = sum(p.numel() for block in network.blocks for p in block.parameters())
    return numbers * _dtype(network).itemsize <= _SMALL


def _dtype(network: Network) -> torch.dtype:
    return torch.float32 if network.is_quick else torch.float64


def backwards(network: Network) -> Iterator[BlockFlow]:
    """The gradients of each block's matrices, from the last block to the first.

    Blocks are differentiated one by one, because powers of two are carried beside the numbers:
    x_true = factor * x forwards, and likewise backwards.
    """
    dtype, is_small = _dtype(network), _is_small(network)
    x, factor, passes = _first_input(network).to(dtype), Scaled(1.0), []
    with without_norms(network.blocks):
        for block, call in zip(network.blocks, _calls(network), strict=True):
            scale = _largest(x)
            run = partial(_run_block, block, call, (x / scale).requires_grad_())
            with torch.set_grad_enabled(is_small):
                ran = run()
            passes.append((run, ran if is_small else None, scale))
            x, factor = ran.output.detach(), factor.times(scale)
            del ran
        cotangent = torch.ones_like(x)
        while passes:
            run, kept, scale = passes.pop()
            ran = kept or run()
            *of_matrices, slope = torch.autograd.grad(
                ran.output, [*ran.matrices, ran.entered], cotangent, materialize_grads=True
            )
            del ran, kept
            yield BlockFlow(factor, [g.flatten(1) for g in of_matrices])
            largest = _largest(slope) or 1.0
            cotangent, factor = slope / largest, factor.times(largest / scale)


class _BlockRun(NamedTuple):
    """One block with absolute weights: those with two axes or more, its input and its output."""

    matrices: list[Tensor]
    entered: Tensor
    output: Tensor


def _run_block(block: nn.Module, call: BlockCall, entered: Tensor) -> _BlockRun:
    dtype = entered.dtype
    parameters = {
        name: parameter.detach().abs().to(dtype).requires_grad_(parameter.ndim >= 2)
        for name, parameter in block.named_parameters()
    }
    state = parameters | _buffers(block, dtype)
    output = torch.func.functional_call(block, state, *call.arguments(entered))
    wanted = [p for p in parameters.values() if p.ndim >= 2]
    return _BlockRun(wanted, entered, first_tensor(output))


def _largest(x: Tensor) -> float:
    return float(x.abs().max())


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
