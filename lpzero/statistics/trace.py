"""One forward pass of any torch transformer, with what every block takes in and gives.

Where the parts of a block are is said by a `Layout`. Models of our spaces carry taps (see
`spaces.taps`) and fit the default; for any other model the layout names sub-modules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from lpzero.errors import InputError
from spaces.taps import Tap

Part = Literal["attention", "feed-forward", "pooling"]


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the parts of a block are, by dotted names inside the block; absent names are no error.

    feed_forward, pooling: first words of the names of the MLP's parameters, and of those that lead
    from stage to stage, every other matrix is the attention's; heads: modules whose input is the
    outputs of all heads side by side; mixing: modules whose output is that, where none of `heads`
    exists; A, S: modules whose output is FFN activations (B, T, f) or attention probabilities
    (B, heads, T, T), beside the taps.
    """

    feed_forward: tuple[str, ...] = (
        "feed_forward", "mlp", "ffn", "linear1", "linear2", "intermediate", "output",
    )  # fmt: skip
    pooling: tuple[str, ...] = ("pool",)
    heads: tuple[str, ...] = ("attention.c_proj", "attention.output", "mixing.output")
    mixing: tuple[str, ...] = ("mixing",)
    A: tuple[str, ...] = ()
    S: tuple[str, ...] = ()

    def part(self, name: str) -> Part:
        """Which part of a block the parameter of that name inside it belongs to."""
        first = name.split(".")[0]
        if first in self.feed_forward:
            return "feed-forward"
        return "pooling" if first in self.pooling else "attention"


@dataclass(slots=True)
class Trace:
    """A forward pass block by block, still attached to its graph.

    inputs, outputs: (B, T, d); A: (B, T, f) each; S: (B, heads, T, T) each, or what a tap of
    that kind gives; heads: (B, T, heads * width), at most one per block.
    """

    inputs: list[Tensor]
    outputs: list[Tensor]
    A: list[list[Tensor]]
    S: list[list[Tensor]]
    heads: list[list[Tensor]]
    output: Any = field(default=None)


def find_blocks(model: nn.Module) -> list[nn.Module]:
    """`model.blocks`, else the members of the ModuleList that holds most parameters."""
    own = list(getattr(model, "blocks", ()))
    if own:
        return own
    lists: list[nn.Module] = [m for m in model.modules() if isinstance(m, nn.ModuleList)]
    if not lists:
        raise InputError(f"{type(model).__name__} has no list of blocks; give blocks=[...]")
    largest = max(lists, key=lambda found: sum(p.numel() for p in found.parameters()))
    return list(largest.children())


def trace(
    model: nn.Module,
    blocks: Sequence[nn.Module],
    layout: Layout,
    tokens: Tensor,
    source: Tensor | None = None,
) -> Trace:
    """The pass over tokens (B, T) or images; `source` (B, T, d) replaces the first block's input.

    The first block's input becomes a leaf: nothing before the blocks is differentiated.
    """
    n = range(len(blocks))
    result = Trace([], [], [[] for _ in n], [[] for _ in n], [[] for _ in n])
    with _listening(blocks, layout, result, source):
        result.output = model(tokens)
    if not len(result.inputs) == len(result.outputs) == len(blocks):
        raise InputError(f"not every block of {type(model).__name__} was run exactly once")
    return result


@contextmanager
def _listening(
    blocks: Sequence[nn.Module], layout: Layout, result: Trace, source: Tensor | None
) -> Iterator[None]:
    """Hooks that fill the trace; removed on leaving."""

    def enter(index: int, _: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
        x = args[0]
        if index == 0:
            x = (x if source is None else source).detach().requires_grad_()
        result.inputs.append(x)
        return (x, *args[1:])

    def leave(_: nn.Module, __: Any, output: Any) -> None:
        result.outputs.append(first_tensor(output))

    def take(into: list[Tensor], _: nn.Module, __: Any, output: Any) -> None:
        into.append(first_tensor(output))

    def take_input(into: list[Tensor], _: nn.Module, args: tuple[Any, ...]) -> None:
        into.append(args[0])

    handles: list[Any] = []
    try:
        for index, block in enumerate(blocks):
            handles.append(block.register_forward_pre_hook(partial(enter, index)))
            handles.append(block.register_forward_hook(leave))
            for kind, into in (("A", result.A[index]), ("S", result.S[index])):
                named = _named(block, getattr(layout, kind))
                for module in (*_tapped(block, kind), *named):
                    handles.append(module.register_forward_hook(partial(take, into)))
            joined, mixing = _named(block, layout.heads), _named(block, layout.mixing)
            for module in joined[:1]:
                before = partial(take_input, result.heads[index])
                handles.append(module.register_forward_pre_hook(before))
            for module in mixing[:1] if not joined else ():
                handles.append(module.register_forward_hook(partial(take, result.heads[index])))
        yield
    finally:
        for handle in handles:
            handle.remove()


def first_tensor(output: Any) -> Tensor:
    """The tensor of a module that gives a tensor, or a tuple that starts with one."""
    found = output[0] if isinstance(output, (tuple, list)) else output
    if not isinstance(found, torch.Tensor):
        raise InputError(f"a block gives {type(found).__name__}, expected a tensor")
    return found


def _tapped(block: nn.Module, kind: str) -> Iterable[nn.Module]:
    return [m for m in block.modules() if isinstance(m, Tap) and m.statistic == kind]


def _named(block: nn.Module, names: Iterable[str]) -> list[nn.Module]:
    modules = dict(block.named_modules())
    return [modules[name] for name in names if name in modules]
