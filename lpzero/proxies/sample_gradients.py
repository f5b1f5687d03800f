"""Gradients of single sequences, and their summary: kernels, signs, variations.

A set of gradients is a list over sequences of lists over weight matrices; it is large, so only its
summary is kept.

The trace of the tangent kernel needs no gradients where all matrices are linear: the gradient of
one sequence at the matrix of a linear layer is X' D, with the layer's input X (T, i) and the slope
D (T, o) at its output. Its squared norm is the inner product of X X' and D D', both (T, T): no
gradient is formed, and all sequences go through at once (Goodfellow 2015). Where a block has other
matrices (tables of positions, convolutions), the trace is that of the whole kernel. A quick
network's is that of its first sequence times the number of sequences.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from spaces.gpt2.model import Affine

if TYPE_CHECKING:
    from lpzero.proxies.network import Network

Gradients = list[list[Tensor]]
PROBE = 2  # the random stream of the probe
_PIECE = 1 << 16  # columns that stay in the processor's cache
_LINEAR = (nn.Linear, Affine)


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


class TangentTrace(NamedTuple):
    """The trace over sequences, tokens and outputs; how many tokens the first block sees."""

    value: float
    n_tokens: int


class _Call(NamedTuple):
    """What entered a linear layer (B, T, i), and what left it (B, T, o)."""

    entered: Tensor
    left: Tensor


def tangent_trace(network: Network) -> TangentTrace:
    """The trace of `gram(of_outputs(network))`."""
    found = _from_layers(network)
    if found is not None:
        return found
    return TangentTrace(float(network.tangent.trace()), network.entry[0])


def _from_layers(network: Network) -> TangentTrace | None:
    layers = [m for block in network.blocks for m in block.modules() if isinstance(m, _LINEAR)]
    if {id(layer.weight) for layer in layers} != {id(weight) for weight in network.weights}:
        return None
    total, n_tokens, B = 0.0, 0, len(network.tokens)
    n_traced = 1 if network.is_quick else B  # the first sequence stands for all of them
    for start in range(0, n_traced, network.chunk):
        with _recorded(layers) as calls:
            trace = network.trace(slice(start, min(start + network.chunk, n_traced)), taps=())
        output, n_tokens = trace.outputs[-1], trace.inputs[0].shape[1]
        once = len({id(layer) for layer, _ in calls}) == len(calls) == len(layers)
        if not once or any(call.entered.ndim != 3 for _, call in calls):
            return None
        along = (output * probe(network, output)).sum()
        wanted = [call.left for _, call in calls]
        slopes = torch.autograd.grad(along, wanted, materialize_grads=True)
        for (_, call), slope in zip(calls, slopes, strict=True):
            x, d = call.entered.double(), slope.double()
            total += float(((x @ x.mT) * (d @ d.mT)).sum())
    return TangentTrace(total * (B / n_traced), n_tokens)


@contextmanager
def _recorded(layers: list[Any]) -> Iterator[list[tuple[nn.Module, _Call]]]:
    """The calls of the layers inside the context, in their order."""
    calls: list[tuple[nn.Module, _Call]] = []

    def record(layer: nn.Module, args: tuple[Any, ...], output: Tensor) -> None:
        calls.append((layer, _Call(args[0].detach(), output)))

    handles = [layer.register_forward_hook(record) for layer in layers]
    try:
        yield calls
    finally:
        for handle in handles:
            handle.remove()
