"""Passes over the batch, part by part: forward, under noise, with the dropout of released recipes.

Forward passes are what the newer proxies read; nothing is differentiated but, for AZ-NAS, each
block's output with respect to its own input.

Noise is added to the first block's input as in the public code of "Training-free NAS for RNNs and
transformers": an amplitude times the variance of the inputs over the batch times standard normal
numbers.

Dropout: released recipes leave their models in train mode. The released GPT-2 drops a tenth of what
each residual branch (attention, feed-forward) adds to the stream, and nothing at the embedding or
in the attention probabilities. The released encoder drops a tenth of its normalised embedding, of
its attention probabilities, and of what each residual branch adds. Our models have no dropout, so
hooks apply it. It matters where inputs are ones: the LayerNorms then divide by the spread that
dropout makes between channels, and Synflow of a GPT-2 falls to a third. A given model drops at each
`nn.Dropout` that it calls, at that one's rate; what it drops inside a fused attention is left
alone. Models without any, ours of images and recurrent cells, are left alone too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from lpzero.errors import InputError
from lpzero.statistics.trace import trace
from spaces.flexibert import model as flexibert
from spaces.gpt2 import model as gpt2

if TYPE_CHECKING:
    from lpzero.proxies.network import Network

_AT_ONCE = 4  # inputs whose graph is held at once; parts add up, so it changes no value
_LOG_GUARD = 1e-8  # as in the code of AZ-NAS
_SIGNS = 5  # the random stream of the signs
AMPLITUDES = (0.0, 0.1, 10.0, 100.0)
NOISE = 3  # the random stream of the noise
RATE = 0.1
_STREAM = 17  # apart from the streams of other draws from the same seed
# Whose output is dropped in our models: a module of this kind itself, or the named part of it.
_DROPPED: dict[type[nn.Module], str] = {
    gpt2.Attention: "",
    gpt2.FeedForward: "",
    flexibert.Embeddings: "norm",
    flexibert.Attention: "tap_s",
    flexibert.Residual: "dense",
}


class LayerRows(NamedTuple):
    """What enters a matrix (n, d) and what comes out (n, f), a row for each token."""

    entered: Tensor
    left: Tensor


def parts(network: Network, most: int | None = None) -> Iterator[slice]:
    """The parts of the batch, of at most `chunk` and `most` inputs."""
    B = len(network.tokens)
    step = min(network.chunk, most or B)
    for start in range(0, B, step):
        yield slice(start, min(start + step, B))


def entropies(network: Network) -> list[float]:
    """The entropy of the first block's input and of the output of every block."""
    with network.untouched(), torch.no_grad():
        traces = [network.trace(part, taps=()) for part in parts(network)]
    by_part = [(found.inputs[0].detach(), *found.outputs) for found in traces]
    return [entropy(torch.cat(same)) for same in zip(*by_part, strict=True)]


def entropy(states: Tensor) -> float:
    """The entropy of the spectrum of states (B, T, d) over tokens, largest where all are equal."""
    rows = states.flatten(0, 1).double()
    centred = rows - rows.mean(0)
    n, d = centred.shape
    gram = centred @ centred.T if n <= d else centred.T @ centred
    values = torch.linalg.eigvalsh(gram).clamp(min=0)
    shares = values / values.sum()
    return -float((shares * (shares + _LOG_GUARD).log()).sum())


def positive_activations(network: Network) -> list[Tensor]:
    """For each block which of its FFN's activations are positive: (B, activations), bool."""

    def read(part: slice) -> list[Tensor]:
        found = trace(
            network.model,
            network.blocks,
            network.tokens[part],
            ("A",),
            lambda _, activation: (activation > 0).flatten(1),
            layout=network.layout,
        )
        if not all(block["A"] for block in found.taps):
            raise network.missing("A")
        return [torch.cat(block["A"], dim=1) for block in found.taps]

    with network.untouched(), torch.no_grad():
        by_part = [read(part) for part in parts(network)]
    return [torch.cat(same) for same in zip(*by_part, strict=True)]


def hidden_layers(network: Network) -> list[list[LayerRows]]:
    """For each block the matrices of its FFN but the last, in the order in which they run."""
    found: list[list[list[LayerRows]]] = []
    with network.untouched(), torch.no_grad():
        for part in parts(network):
            found.append([block[:-1] for block in _calls(network, part)])
    for index, block in enumerate(found[0]):
        if not block:
            raise InputError(
                f"block {index} of {type(network.model).__name__} has no hidden layer of a"
                " feed-forward network; name its matrices in Layout.feed_forward"
            )
    return [
        [LayerRows(*map(torch.cat, zip(*same, strict=True))) for same in zip(*block, strict=True)]
        for block in zip(*found, strict=True)
    ]


def _calls(network: Network, part: slice) -> list[list[LayerRows]]:
    """The calls of each block's FFN's matrices in one pass, in order."""
    calls: list[list[LayerRows]] = [[] for _ in network.blocks]
    handles = []

    def keep(index: int, name: str) -> Any:
        def hook(_: nn.Module, args: tuple[Any, ...], output: Tensor) -> None:
            if not isinstance(output, Tensor):
                raise InputError(
                    f"{name} of block {index} gives several tensors, as a router of experts does:"
                    " it is no hidden layer"
                )
            calls[index].append(LayerRows(args[0].flatten(0, -2), output.flatten(0, -2)))

        return hook

    for index, block in enumerate(network.blocks):
        for name, module in block.named_modules():
            if _is_product(module) and network.layout.part(f"{name}.weight") == "feed-forward":
                handles.append(module.register_forward_hook(keep(index, name)))
    try:
        network.trace(part, taps=())
    finally:
        for handle in handles:
            handle.remove()
    return calls


def _is_product(module: nn.Module) -> bool:
    """Whether the module multiplies by one matrix."""
    weight = dict(module.named_parameters(recurse=False)).get("weight")
    return weight is not None and weight.ndim == 2 and not isinstance(module, nn.Embedding)


def block_jacobians(network: Network) -> list[Tensor | None]:
    """For each block the mean over tokens of (J' g) g' (d, f), g random signs at its output.

    J is the Jacobian of the block's outputs with respect to its inputs, over all tokens at once;
    the expectation over g is J' of a token averaged over tokens. None for a block that changes the
    number of tokens.
    """
    B = len(network.tokens)
    rng = network.draw(_SIGNS)
    signs: list[Tensor] = []
    totals: list[Tensor | None] = []
    with network.untouched():
        for part in parts(network, _AT_ONCE):
            found = network.trace(part, taps=())
            for index, (entered, left) in enumerate(zip(found.inputs, found.outputs, strict=True)):
                if len(signs) == index:  # drawn for the whole batch, however it is split
                    drawn = rng.integers(0, 2, (B, *left.shape[1:])) * 2.0 - 1.0
                    signs.append(torch.from_numpy(drawn).to(left))
                    totals.append(None)
                if entered.shape[1] != left.shape[1]:
                    continue
                at = signs[index][part]
                (back,) = torch.autograd.grad(
                    left, entered, at, retain_graph=True, materialize_grads=True
                )
                rows, columns = back.flatten(0, 1).double(), at.flatten(0, 1).double()
                added = rows.T @ columns / (B * left.shape[1])
                known = totals[index]
                totals[index] = added if known is None else known + added
    return totals


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


@contextmanager
def train_mode_dropout(model: nn.Module, seed: int, part: slice, run: int = 0) -> Iterator[None]:
    """A context in which the model drops out as in train mode.

    `part` of the batch goes through: every input has the same masks however the batch is split.
    `run` tells passes with masks of their own apart.
    """
    handles = [
        place.register_forward_hook(partial(_drop, (seed, _STREAM, run, index), rate, part))
        for index, (place, rate) in enumerate(_dropped_modules(model))
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _dropped_modules(model: nn.Module) -> list[tuple[nn.Module, float]]:
    """The modules whose output is dropped, and the share that is."""
    found: list[tuple[nn.Module, float]] = []
    for module in model.modules():
        if type(module) in _DROPPED:
            found.append((module.get_submodule(_DROPPED[type(module)]), RATE))
        elif isinstance(module, nn.Dropout) and module.p > 0:
            found.append((module, module.p))
    return found


def kept(entropy: tuple[int, ...], shape: torch.Size, rate: float = RATE) -> Tensor:
    """One input's mask: 0 where a value is dropped, else 1 over the share that is not."""
    state = np.random.SeedSequence(list(entropy)).generate_state(1, np.uint32)
    generator = torch.Generator().manual_seed(int(state[0]))
    drawn = torch.rand(shape, generator=generator, dtype=torch.float64)
    return (drawn >= rate).double() / (1 - rate or 1.0)  # a rate of 1 drops all there is


def _drop(
    entropy: tuple[int, ...], rate: float, part: slice, _: nn.Module, __: Any, output: Tensor
) -> Tensor:
    places = range(part.start, part.stop)
    if len(output) != len(places):  # of a given model, not one row for each input
        return output * kept(entropy, output.shape, rate).to(output)
    masks = torch.stack([kept((*entropy, i), output.shape[1:], rate) for i in places])
    return output * masks.to(output)
