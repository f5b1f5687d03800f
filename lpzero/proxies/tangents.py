"""The trace of the tangent kernel without the gradients themselves, where all matrices are linear.

The gradient of one sequence at the matrix of a linear layer is X' D, with the layer's input X
(T, i) and the slope D (T, o) at its output. Its squared norm is the inner product of X X' and D D',
both (T, T): no gradient is formed, and all sequences go through at once (Goodfellow 2015). Where a
block has other matrices (tables of positions, convolutions), the trace is that of the whole kernel.
A quick network's is that of its first sequence times the number of sequences.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from lpzero.proxies import sample_gradients
from spaces.gpt2.model import Affine

if TYPE_CHECKING:
    from lpzero.proxies.network import Network

_LINEAR = (nn.Linear, Affine)


class TangentTrace(NamedTuple):
    """The trace over sequences, tokens and outputs; how many tokens the first block sees."""

    value: float
    n_tokens: int


class _Call(NamedTuple):
    """What entered a linear layer (B, T, i), and what left it (B, T, o)."""

    entered: Tensor
    left: Tensor


def tangent_trace(network: Network) -> TangentTrace:
    """The trace of `sample_gradients.gram(sample_gradients.of_outputs(network))`."""
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
        along = (output * sample_gradients.probe(network, output)).sum()
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
