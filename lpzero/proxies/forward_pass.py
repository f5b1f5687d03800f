"""Forward passes over the batch, part by part: what the newer proxies read of them.

Nothing is differentiated but, for AZ-NAS, each block's output with respect to its own input.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from lpzero.errors import InputError
from lpzero.statistics.trace import trace

if TYPE_CHECKING:
    from lpzero.proxies.network import Network

_AT_ONCE = 4  # inputs whose graph is held at once; parts add up, so it changes no value
_LOG_GUARD = 1e-8  # as in the code of AZ-NAS
_SIGNS = 5  # the random stream of the signs


class Affine(NamedTuple):
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


def hidden_layers(network: Network) -> list[list[Affine]]:
    """For each block the matrices of its FFN but the last, in the order in which they run."""
    found: list[list[list[Affine]]] = []
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
        [Affine(*map(torch.cat, zip(*same, strict=True))) for same in zip(*block, strict=True)]
        for block in zip(*found, strict=True)
    ]


def _calls(network: Network, part: slice) -> list[list[Affine]]:
    """The calls of each block's FFN's matrices in one pass, in order."""
    calls: list[list[Affine]] = [[] for _ in network.blocks]
    handles = []

    def keep(index: int) -> Any:
        def hook(_: nn.Module, args: tuple[Any, ...], output: Tensor) -> None:
            calls[index].append(Affine(args[0].flatten(0, -2), output.flatten(0, -2)))

        return hook

    for index, block in enumerate(network.blocks):
        for name, module in block.named_modules():
            if _is_product(module) and network.layout.part(f"{name}.weight") == "feed-forward":
                handles.append(module.register_forward_hook(keep(index)))
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
