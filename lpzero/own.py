"""`lpzero.space`: a user's space, whose sizes are measured on its networks.

A network states no sizes itself. A module with taps is laid out without memory where that works
(torch's device "meta"), and really built where it does not. One forward pass of one input gives its
floating-point operations, by torch's own counter, and which parameters are used before, in and
after the blocks. A module without taps is always built, because its layout is found by running it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from lpzero.errors import InputError
from lpzero.statistics import StatisticsError
from lpzero.statistics.inputs import read_inputs
from lpzero.statistics.layout import TAPPED, Layout, find_blocks, first_tensor
from lpzero.statistics.layout_finder import find_layout
from lpzero.statistics.model_sizes import model_sizes
from spaces.base import EMBEDDING, HEAD, Sizes
from spaces.errors import DeclarationError, shown
from spaces.own.configuration import read_choices
from spaces.own.space import (
    Build,
    Count,
    DrawBatch,
    Holds,
    MeasuredSizes,
    OwnSpace,
    Train,
    checked_name,
    checked_shape,
    drawn_shape,
    name_of,
    source_digest,
)
from spaces.taps import Tap

BEFORE, INSIDE, AFTER = range(3)


def space(
    choices: Mapping[str, Any],
    build: Build,
    *,
    name: str | None = None,
    depth: str | None = None,
    batch: Sequence[int] | DrawBatch = (4, 32),
    vocabulary: int = 256,
    layout: Any = None,
    parameters: Count | None = None,
    flops: Count | None = None,
    train: Train | None = None,
    where: Holds | None = None,
    target: str = "target",
    version: int = 1,
) -> OwnSpace:
    """The space of these choices, whose networks `build` makes from a configuration.

    choices: a list of values for each name; under "per_layer" those that every layer has. depth:
    the choice that is the number of layers, "layers" unless named. batch: (sequences, tokens) of
    ids below `vocabulary`, (images, 3, height, width), or a function from a seed to a tensor.
    layout: where statistics are read in modules that have no taps. parameters, flops: functions of
    a configuration, for where they are not to be measured. train: from a configuration and a seed
    to the trained quality, larger is better, for `lpzero train`; target: what that is called.
    where: whether a configuration is one of the space's, `lambda c: c.width % c.heads == 0`.
    version: raise it when code that `build` imports changes what it builds; its own file is
    watched.
    """
    if not callable(build):
        raise InputError(f"build is {shown(build)}, expected a function of a configuration")
    if train is not None and not callable(train):
        raise InputError(
            f"train is {shown(train)}, expected a function of an architecture and seed"
        )
    draw = batch if callable(batch) else None
    digests = tuple(
        source_digest(function)
        for function in (build, draw, parameters, flops, where)
        if function is not None
    )
    try:
        return OwnSpace(
            name=name_of(build) if name is None else checked_name(name),
            choices=read_choices(choices, depth),
            source=digests,
            inputs=drawn_shape(draw) if draw is not None else checked_shape(batch),
            vocabulary=vocabulary,
            version=version,
            make=build,
            measure=measure,
            operations_of=flops_on_meta,
            draw=draw,
            layout=layout,
            count=parameters,
            operations=flops,
            train=train,
            target=target,
            train_source=None if train is None else source_digest(train),
            where=where,
        )
    except DeclarationError as error:
        raise InputError(str(error)) from None


def measure(make: Callable[[], nn.Module], inputs: Tensor, layout: Any = None) -> MeasuredSizes:
    """The sizes of the module that `make` gives, and its flops on `inputs`, one input (1, ...).

    `layout` is the user's, for a module without taps.
    """
    # A module that needs real numbers gets them below, or fails there by its own error.
    with suppress(Exception), torch.device("meta"):
        model = make().eval()
        if _has_taps(model):
            return _measured(model, inputs.to("meta"))
    model = make().eval()
    if _has_taps(model):
        return _measured(model, inputs)
    sizes = _without_taps(model, inputs, layout)
    flops = flops_on_meta(make, inputs)
    return sizes if flops is None else replace(sizes, flops=flops)


def flops_on_meta(make: Callable[[], nn.Module], inputs: Tensor) -> int | None:
    """The flops of a pass of `inputs` without numbers, where no kernel of a processor hides some.

    None if the module needs numbers.
    """
    with suppress(Exception), torch.device("meta"):
        return _flops(make().eval(), inputs.to("meta"))
    return None


def _has_taps(model: nn.Module) -> bool:
    try:
        blocks = find_blocks(model)
    except StatisticsError:
        return False
    return any(isinstance(module, Tap) for block in blocks for module in block.modules())


def _flops(model: nn.Module, inputs: Tensor) -> int:
    counter = FlopCounterMode(display=False)
    with ExitStack() as hooks, torch.no_grad(), counter:
        for module in model.modules():  # torch's fused layers run apart only under hooks
            hooks.callback(module.register_forward_pre_hook(lambda *_: None).remove)
        model(inputs)
    return int(counter.get_total_flops())


def _without_taps(model: nn.Module, inputs: Tensor, given: Any) -> MeasuredSizes:
    layout = find_layout(model, inputs, given)
    blocks, read = layout.find_blocks(model), read_inputs(inputs, model)
    sizes = model_sizes(model, blocks, read, layout)
    common = set.intersection(*(set(of) for of in sizes.blocks))
    return MeasuredSizes(
        parameters=sizes.parameters,
        decoder=sizes.decoder_parameters,
        attention=sizes.attention_parameters,
        flops=_flops(model, inputs),
        projections=sizes.projections,
        blocks=tuple({k: v for k, v in of.items() if k in common} for of in sizes.blocks),
        widths=sizes.widths,
        ends=sizes.ends,
        absent=frozenset(sizes.absent),
    )


class _Pass:
    """What the hooks of a pass see: where modules run, and the shapes at blocks and taps."""

    def __init__(self, n_blocks: int) -> None:
        self.n_entered = self.n_left = 0
        self.phases: dict[int, int] = {}  # by the id of a module, of its first run
        self.entered = [0] * n_blocks
        self.left = [0] * n_blocks
        self.shapes: list[dict[str, tuple[int, ...]]] = [{} for _ in range(n_blocks)]

    def run(self, module: nn.Module, _: Any) -> None:
        if self.n_entered == 0:
            phase = BEFORE
        else:
            phase = INSIDE if self.n_left < len(self.entered) else AFTER
        self.phases.setdefault(id(module), phase)

    def enter(self, index: int, _: nn.Module, arguments: tuple[Any, ...]) -> None:
        if not arguments or not isinstance(arguments[0], Tensor):
            raise StatisticsError(f"block {index} takes no tensor as its first argument")
        self.entered[index] = arguments[0].shape[-1]
        self.n_entered += 1

    def leave(self, index: int, _: nn.Module, __: Any, output: Any) -> None:
        self.left[index] = first_tensor(output).shape[-1]
        self.n_left += 1

    def tap(self, index: int, module: Tap, _: Any, output: Tensor) -> None:
        self.shapes[index][module.statistic] = tuple(output.shape)


def _measured(model: nn.Module, inputs: Tensor) -> MeasuredSizes:
    blocks = find_blocks(model)
    seen = _Pass(len(blocks))
    counter = FlopCounterMode(display=False)
    with ExitStack() as hooks, torch.no_grad():
        _hook(model, blocks, seen, hooks)
        with counter:
            model(inputs)
    if seen.n_entered != len(blocks) or seen.n_left != len(blocks):
        raise StatisticsError(f"not every block of {type(model).__name__} was run exactly once")
    marked = [[m for m in block.modules() if isinstance(m, Tap)] for block in blocks]
    of_blocks = [_block_sizes(block, seen, index) for index, block in enumerate(blocks)]
    common = set.intersection(*(set(sizes) for sizes in of_blocks))
    inside = sum(sizes["params"] for sizes in of_blocks)
    before, norms, after = _outside(model, blocks, seen)
    return MeasuredSizes(
        parameters=inside + before + norms + after,
        decoder=inside + norms,
        attention=sum(map(_attention, blocks)),
        flops=int(counter.get_total_flops()),
        projections=sum(tap.statistic == "H" for of in marked for tap in of),
        blocks=tuple({k: v for k, v in sizes.items() if k in common} for sizes in of_blocks),
        widths=tuple(seen.left),
        ends={
            EMBEDDING: {"params": before, "width": seen.entered[0]},
            HEAD: {"params": after, "width": seen.left[-1]},
        },
        absent=frozenset(TAPPED) - {tap.statistic for of in marked for tap in of},
    )


def _hook(model: nn.Module, blocks: Sequence[nn.Module], seen: _Pass, hooks: ExitStack) -> None:
    for module in model.modules():
        hooks.callback(module.register_forward_pre_hook(seen.run).remove)
    for index, block in enumerate(blocks):
        hooks.callback(block.register_forward_pre_hook(partial(seen.enter, index)).remove)
        hooks.callback(block.register_forward_hook(partial(seen.leave, index)).remove)
        for module in block.modules():
            if isinstance(module, Tap):
                tap: Any = partial(seen.tap, index)
                hooks.callback(module.register_forward_hook(tap).remove)


def _block_sizes(block: nn.Module, seen: _Pass, index: int) -> Sizes:
    sizes = {"params": _count(block.parameters()), "width": seen.entered[index]}
    shapes = seen.shapes[index]
    if len(shapes.get("A", ())) >= 2:
        sizes["ffn"] = shapes["A"][-1]
    if len(shapes.get("S", ())) == 4:
        sizes["heads"] = shapes["S"][1]
    return sizes


def _outside(model: nn.Module, blocks: Sequence[nn.Module], seen: _Pass) -> tuple[int, int, int]:
    """Parameters used before the blocks, in norms after them, and in what else is after them.

    Each counts once, where it is used first, so a head that shares the embedding's has none.
    """
    counted = {id(p) for block in blocks for p in block.parameters()}
    counts = {"before": 0, "norms": 0, "after": 0}
    for module in model.modules():
        own = [p for p in module.parameters(recurse=False) if id(p) not in counted]
        counted |= {id(p) for p in own}
        is_after = seen.phases.get(id(module), BEFORE) == AFTER
        is_norm = "norm" in type(module).__name__.lower()
        place = ("norms" if is_norm else "after") if is_after else "before"
        counts[place] += _count(own)
    return counts["before"], counts["norms"], counts["after"]


def _attention(block: nn.Module) -> int:
    """Parameters of the block outside norms and outside what is named as a feed-forward layer."""
    layout = Layout()
    norms = {
        id(p)
        for module in block.modules()
        if "norm" in type(module).__name__.lower()
        for p in module.parameters(recurse=False)
    }
    return _count(
        p
        for name, p in block.named_parameters()
        if id(p) not in norms and layout.part(name) == "attention"
    )


def _count(parameters: Any) -> int:
    return sum(p.numel() for p in parameters)
