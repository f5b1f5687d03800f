"""One forward pass of any torch transformer, recorded block by block.

In: a model, its blocks, a batch. Out: a `Trace` with the input and output of every block and the
tensors at the taps (see `spaces.taps`). Models of our spaces have taps; for any other model a
`Layout` names the sub-modules to read instead.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, Literal, TypeVar

import torch
from torch import Tensor, nn

from lpzero.statistics.errors import StatisticsError
from spaces.taps import StateTap, Tap

Part = Literal["attention", "feed-forward", "pooling"]
K = TypeVar("K")
Keep = Callable[[str, Tensor], K]  # from a statistic and a tensor to what is recorded of it


@dataclass(frozen=True, slots=True)
class Layout:
    """The parts of a block, by dotted names inside the block; names that do not exist are ignored.

    feed_forward, pooling: first components of the names of the MLP's parameters, and of those
    between stages; every other matrix belongs to the attention. heads: modules whose input is the
    concatenated outputs of all heads. mixing: modules whose output is that, used if none of `heads`
    exists. A, S: modules, in addition to the taps, whose output is FFN activations (B, T, f) or
    attention probabilities (B, heads, T, T).
    """

    feed_forward: tuple[str, ...] = (
        "feed_forward",
        "mlp",
        "ffn",
        "linear1",
        "linear2",
        "intermediate",
        "output",
        "cell",
        "convolution",
    )
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

    def modules(self, statistic: str) -> tuple[str, ...]:
        """The names of the modules that give the statistic, in addition to the taps."""
        return {"A": self.A, "S": self.S}.get(statistic, ())


@dataclass(slots=True)
class Trace(Generic[K]):
    """A forward pass block by block; tensors are still attached to their graph.

    inputs, outputs: (B, T, d). taps: for each block and statistic the recorded value of every
    tensor (A is (B, T, f), S is (B, heads, T, T), others as the tap gives them). heads:
    (B, T, heads * width), at most one per block, none without a layout. steps: for each block its
    first hidden state (B, d) after every step, if it is recurrent and they are asked for.
    """

    inputs: list[Tensor]
    outputs: list[Tensor]
    taps: list[dict[str, list[K]]]
    heads: list[list[Tensor]]
    output: Any = field(default=None)
    steps: list[list[Tensor]] = field(default_factory=list)


def find_blocks(model: nn.Module) -> list[nn.Module]:
    """`model.blocks`, else the members of the ModuleList with the most parameters."""
    own = list(getattr(model, "blocks", ()))
    if own:
        return own
    lists: list[nn.Module] = [m for m in model.modules() if isinstance(m, nn.ModuleList)]
    if not lists:
        raise StatisticsError(f"{type(model).__name__} has no `blocks` and no nn.ModuleList")
    largest = max(lists, key=lambda found: sum(p.numel() for p in found.parameters()))
    return list(largest.children())


def named_weights(block: nn.Module) -> list[tuple[str, nn.Parameter]]:
    """The block's parameters with at least two axes, with their names in the block."""
    return [(name, weight) for name, weight in block.named_parameters() if weight.ndim >= 2]


def trace(
    model: nn.Module,
    blocks: Sequence[nn.Module],
    tokens: Tensor,
    taps: Collection[str],
    keep: Keep[K],
    *,
    layout: Layout | None = None,
    source: Tensor | None = None,
    reaches_embedding: bool = False,
    with_steps: bool = False,
) -> Trace[K]:
    """The trace of a pass over tokens (B, T) or images; `keep` maps each tensor at the `taps`.

    `source` (B, T, d) replaces the first block's input. That input becomes a leaf: nothing before
    the blocks is differentiated, unless the gradient `reaches_embedding`. `layout` names modules
    beside the taps, and those of the heads.
    """
    recorder = _Recorder(blocks, taps, keep, source, reaches_embedding)
    with _hooked(recorder, layout, with_steps):
        output = model(tokens)
    n = range(len(blocks))
    if recorder.n_entered != len(n) or recorder.n_left != len(n) or len(recorder.outputs) != len(n):
        raise StatisticsError(f"not every block of {type(model).__name__} was run exactly once")
    inputs, outputs = ([found[i] for i in n] for found in (recorder.inputs, recorder.outputs))
    return Trace(inputs, outputs, recorder.taps, recorder.heads, output, recorder.steps)


class _Recorder(Generic[K]):
    """What the hooks of a pass have recorded so far."""

    def __init__(
        self,
        blocks: Sequence[nn.Module],
        taps: Collection[str],
        keep: Keep[K],
        source: Tensor | None,
        reaches_embedding: bool,
    ) -> None:
        self.blocks, self.keep, self.source = blocks, keep, source
        self.reaches_embedding = reaches_embedding
        self.inputs: dict[int, Tensor] = {}
        self.outputs: dict[int, Tensor] = {}
        self.taps: list[dict[str, list[K]]] = [{name: [] for name in taps} for _ in blocks]
        self.heads: list[list[Tensor]] = [[] for _ in blocks]
        self.steps: list[list[Tensor]] = [[] for _ in blocks]
        self.n_entered = self.n_left = 0

    def enter(self, index: int, _: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
        x = args[0]
        is_attached = self.reaches_embedding and self.source is None and x.requires_grad
        if index == 0 and not is_attached:
            x = (x if self.source is None else self.source).detach().requires_grad_()
        self.inputs[index] = x
        self.n_entered += 1
        return (x, *args[1:])

    def leave(self, index: int, _: nn.Module, __: Any, output: Any) -> None:
        self.outputs[index] = first_tensor(output)
        self.n_left += 1

    def tap(self, index: int, statistic: str, _: nn.Module, __: Any, output: Any) -> None:
        self.taps[index][statistic].append(self.keep(statistic, first_tensor(output)))

    def step(self, index: int, _: nn.Module, __: Any, output: Tensor) -> None:
        self.steps[index].append(output)

    def heads_before(self, index: int, _: nn.Module, args: tuple[Any, ...]) -> None:
        self.heads[index].append(args[0])

    def heads_after(self, index: int, _: nn.Module, __: Any, output: Any) -> None:
        self.heads[index].append(first_tensor(output))


@contextmanager
def _hooked(recorder: _Recorder[K], layout: Layout | None, with_steps: bool) -> Iterator[None]:
    """Hooks that fill the recorder; removed on leaving."""
    handles: list[Any] = []
    try:
        for index, block in enumerate(recorder.blocks):
            handles.append(block.register_forward_pre_hook(partial(recorder.enter, index)))
            handles.append(block.register_forward_hook(partial(recorder.leave, index)))
            for statistic, module in _tapped(block, recorder.taps[index], layout):
                hook = partial(recorder.tap, index, statistic)
                handles.append(module.register_forward_hook(hook))
            for module in block.modules() if with_steps else ():
                if isinstance(module, StateTap):
                    handles.append(module.register_forward_hook(partial(recorder.step, index)))
            if layout is None:
                continue
            joined, mixing = _named(block, layout.heads), _named(block, layout.mixing)
            for module in joined[:1]:
                before = partial(recorder.heads_before, index)
                handles.append(module.register_forward_pre_hook(before))
            for module in mixing[:1] if not joined else ():
                after = partial(recorder.heads_after, index)
                handles.append(module.register_forward_hook(after))
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def without_norms(blocks: Iterable[nn.Module]) -> Iterator[None]:
    """A context in which the blocks' LayerNorms return their input."""

    def skip(_: nn.Module, args: tuple[Any, ...], __: Tensor) -> Tensor:
        x: Tensor = args[0]
        return x

    norms = [m for block in blocks for m in block.modules() if isinstance(m, nn.LayerNorm)]
    handles = [norm.register_forward_hook(skip) for norm in norms]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def first_tensor(output: Any) -> Tensor:
    """The output of a module if it is a tensor, or the first element of a tuple or list."""
    found = output[0] if isinstance(output, (tuple, list)) else output
    if not isinstance(found, torch.Tensor):
        raise StatisticsError(f"a block gives {type(found).__name__}, expected a tensor")
    return found


def _tapped(
    block: nn.Module, statistics: Collection[str], layout: Layout | None
) -> Iterator[tuple[str, nn.Module]]:
    """The modules of a block whose outputs are these statistics."""
    for module in block.modules():
        if isinstance(module, Tap) and module.statistic in statistics:
            yield module.statistic, module
    if layout is not None:
        for statistic in statistics:
            for module in _named(block, layout.modules(statistic)):
                yield statistic, module


def _named(block: nn.Module, names: Iterable[str]) -> list[nn.Module]:
    modules = dict(block.named_modules())
    return [modules[name] for name in names if name in modules]
