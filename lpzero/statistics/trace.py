"""One forward pass of any torch transformer, recorded block by block.

In: a model, its blocks, a batch. Out: a `Trace` with the input and output of every block and the
tensors at the taps (see `spaces.taps`). Models of our spaces have taps; for any other model a
`Layout` (`lpzero.statistics.layout`) names the sub-modules to read instead.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

from torch import Tensor, nn

from lpzero.statistics import StatisticsError
from lpzero.statistics.inputs import Inputs, call
from lpzero.statistics.layout import (
    Layout,
    Part,
    Reading,
    find_blocks,
    first_tensor,
    is_norm,
)
from spaces.taps import StateTap, Tap

__all__ = [
    "BlockCall",
    "Layout",
    "Part",
    "Trace",
    "by_token",
    "find_blocks",
    "first_tensor",
    "named_weights",
    "trace",
    "without_norms",
]

K = TypeVar("K")
Keep = Callable[[str, Tensor], K]  # from a statistic and a tensor to what is recorded of it


class BlockCall(NamedTuple):
    """The arguments of a block beside its input: masks, rotary positions and the like."""

    others: tuple[Any, ...] = ()
    named: Mapping[str, Any] = MappingProxyType({})
    name: str | None = None  # of the input, where the model gives it by name

    def arguments(self, x: Tensor) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What to call the block with so that it reads `x`."""
        if self.name is None:
            return (x, *self.others), dict(self.named)
        return self.others, {**self.named, self.name: x}


@dataclass(slots=True)
class Trace(Generic[K]):
    """A forward pass block by block; tensors are still attached to their graph.

    inputs, outputs: (B, T, d). taps: for each block and statistic the recorded value of every
    tensor (A is (B, T, f), S is (B, heads, T, T), others as the tap gives them). heads:
    (B, T, heads * width), at most one per block, none without a layout. steps: for each block its
    first hidden state (B, d) after every step, if it is recurrent and they are asked for. calls:
    the other arguments of each block. head_input: what enters the head that the layout names.
    """

    inputs: list[Tensor]
    outputs: list[Tensor]
    taps: list[dict[str, list[K]]]
    heads: list[list[Tensor]]
    output: Any = field(default=None)
    steps: list[list[Tensor]] = field(default_factory=list)
    calls: list[BlockCall] = field(default_factory=list)
    head_input: Tensor | None = None


def named_weights(block: nn.Module) -> list[tuple[str, nn.Parameter]]:
    """The block's parameters with at least two axes, with their names in the block."""
    return [(name, weight) for name, weight in block.named_parameters() if weight.ndim >= 2]


def trace(
    model: nn.Module,
    blocks: Sequence[nn.Module],
    tokens: Inputs,
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
    head = None if layout is None else layout.head_module(model)
    with _hooked(recorder, layout, with_steps, head):
        output = call(model, tokens)
    n = range(len(blocks))
    if recorder.n_entered != len(n) or recorder.n_left != len(n) or len(recorder.outputs) != len(n):
        raise StatisticsError(f"not every block of {type(model).__name__} was run exactly once")
    inputs, outputs = ([found[i] for i in n] for found in (recorder.inputs, recorder.outputs))
    calls = [recorder.calls[i] for i in n]
    found = inputs, outputs, recorder.taps, recorder.heads, output, recorder.steps, calls
    return Trace(*found, next(iter(recorder.at_head), None))


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
        self.calls: dict[int, BlockCall] = {}
        self.at_head: list[Tensor] = []
        self.n_entered = self.n_left = 0

    def enter(
        self, index: int, block: nn.Module, args: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        x, self.calls[index] = _taken_apart(block, args, named)
        is_attached = self.reaches_embedding and self.source is None and x.requires_grad
        if index == 0 and not is_attached:
            x = (x if self.source is None else self.source).detach().requires_grad_()
        self.inputs[index] = x
        self.n_entered += 1
        return self.calls[index].arguments(x)

    def leave(self, index: int, _: nn.Module, __: Any, output: Any) -> None:
        self.outputs[index] = first_tensor(output)
        self.n_left += 1

    def tap(
        self,
        index: int,
        statistic: str,
        reading: Reading,
        module: nn.Module,
        args: Any,
        output: Any,
    ) -> None:
        for tensor in reading.tensors(args[0] if args else None, output):
            is_own = isinstance(module, Tap)
            read = tensor if is_own else by_token(tensor, self.inputs[index])
            self.taps[index][statistic].append(self.keep(statistic, read))

    def head(self, _: nn.Module, args: tuple[Any, ...]) -> None:
        self.at_head.append(args[0])

    def step(self, index: int, _: nn.Module, __: Any, output: Tensor) -> None:
        self.steps[index].append(output)

    def heads_before(self, index: int, _: nn.Module, args: tuple[Any, ...]) -> None:
        self.heads[index].append(args[0])

    def heads_after(self, index: int, _: nn.Module, __: Any, output: Any) -> None:
        self.heads[index].append(first_tensor(output))


@contextmanager
def _hooked(
    recorder: _Recorder[K], layout: Layout | None, with_steps: bool, head: nn.Module | None
) -> Iterator[None]:
    """Hooks that fill the recorder; removed on leaving."""
    handles: list[Any] = []
    try:
        if head is not None:
            handles.append(head.register_forward_pre_hook(recorder.head))
        for index, block in enumerate(recorder.blocks):
            enter = partial(recorder.enter, index)
            handles.append(block.register_forward_pre_hook(enter, with_kwargs=True))
            handles.append(block.register_forward_hook(partial(recorder.leave, index)))
            for statistic, reading, module in _tapped(block, recorder.taps[index], layout):
                hook = partial(recorder.tap, index, statistic, reading)
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
    """A context in which the blocks' norms return their input."""

    def skip(_: nn.Module, args: tuple[Any, ...], __: Tensor) -> Tensor:
        x: Tensor = args[0]
        return x

    norms = [m for block in blocks for m in block.modules() if is_norm(m)]
    handles = [norm.register_forward_hook(skip) for norm in norms]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def by_token(tensor: Tensor, entered: Tensor) -> Tensor:
    """The tensor (B, T, f), where a model has joined the tokens of all inputs: (B T, f)."""
    B, T = entered.shape[:2]
    is_joined = tensor.ndim == 2 and len(tensor) == B * T
    return tensor.unflatten(0, (B, T)) if is_joined else tensor


def _taken_apart(
    block: nn.Module, args: tuple[Any, ...], named: dict[str, Any]
) -> tuple[Tensor, BlockCall]:
    """The block's input, and its other arguments."""
    if args and isinstance(args[0], Tensor):
        return args[0], BlockCall(args[1:], named)
    for name, value in named.items():
        if isinstance(value, Tensor) and value.is_floating_point():
            others = {key: one for key, one in named.items() if key != name}
            return value, BlockCall(args, others, name)
    raise StatisticsError(f"a block, {type(block).__name__}, is called without a tensor")


def _tapped(
    block: nn.Module, statistics: Collection[str], layout: Layout | None
) -> Iterator[tuple[str, Reading, nn.Module]]:
    """The modules of a block where these statistics are read, and what is read there."""
    for name, module in block.named_modules():
        if isinstance(module, Tap) and module.statistic in statistics:
            yield module.statistic, Reading(name), module
    if layout is not None:
        modules = dict(block.named_modules())
        for statistic in statistics:
            for reading in layout.readings(statistic):
                if reading.module in modules:
                    yield statistic, reading, modules[reading.module]


def _named(block: nn.Module, names: Iterable[str]) -> list[nn.Module]:
    modules = dict(block.named_modules())
    return [modules[name] for name in names if name in modules]
