"""The sizes of any torch transformer, counted on the model itself.

They are those that a space states of its architectures (`spaces.base`): parameters of the blocks
and of the ends, widths, heads, projections, floating-point operations of one input.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from lpzero.statistics.inputs import Inputs, call, main_tensor
from lpzero.statistics.isolation import untouched
from lpzero.statistics.layout import TAPPED, Layout, is_norm
from lpzero.statistics.trace import Trace, trace
from spaces.base import Sizes
from spaces.taps import EMBEDDING, HEAD


@dataclass(frozen=True, slots=True)
class ModelSizes:
    """The sizes of one model; `absent` are the tapped statistics that none of its blocks has."""

    parameters: int
    attention_parameters: int
    n_tokens: int
    widths: tuple[int, ...]  # of what each block gives
    projections: int
    blocks: list[Sizes]
    ends: dict[str, Sizes]
    absent: frozenset[str]

    @property
    def decoder_parameters(self) -> int:
        """Parameters of the blocks and the final norm."""
        return self.parameters - sum(sizes["params"] for sizes in self.ends.values())


def model_sizes(
    model: nn.Module, blocks: Sequence[nn.Module], inputs: Inputs, layout: Layout
) -> ModelSizes:
    """The sizes that the model shows on the first input of the batch."""
    first = inputs[slice(0, 1)]
    before: set[int] = set()  # modules that began before the first block
    ran: set[int] = set()
    has_begun: list[bool] = []

    def enter(module: nn.Module, _: Any) -> None:
        ran.add(id(module))
        if module is blocks[0]:
            has_begun.append(True)
        elif not has_begun:
            before.add(id(module))

    with (
        untouched(model, [], next(model.parameters()).device),
        torch.no_grad(),
        ExitStack() as undo,
    ):
        for module in model.modules():
            undo.callback(module.register_forward_pre_hook(enter).remove)
        seen = trace(model, blocks, first, TAPPED, lambda _, tensor: tensor, layout=layout)
    absent = {name for name in TAPPED if not any(block[name] for block in seen.taps)}
    ends = _end_sizes(model, blocks, before, ran)
    words = max(
        (m for m in model.modules() if isinstance(m, nn.Embedding) and id(m) in before),
        key=lambda table: table.num_embeddings,
        default=None,
    )
    is_image = main_tensor(first).is_floating_point()
    entering = seen.inputs[0].shape[-1]
    ends[EMBEDDING]["width"] = entering if is_image or words is None else words.embedding_dim
    ends[HEAD]["width"] = seen.outputs[-1].shape[-1]
    return ModelSizes(
        sum(parameter.numel() for parameter in model.parameters()),
        sum(_attention(block, layout) for block in blocks),
        seen.inputs[0].shape[1],
        tuple(output.shape[-1] for output in seen.outputs),
        sum(len(block["H"]) for block in seen.taps),
        [_block_sizes(block, index, seen) for index, block in enumerate(blocks)],
        ends,
        frozenset(absent),
    )


def _block_sizes(block: nn.Module, index: int, seen: Trace[Tensor]) -> Sizes:
    taps, width = seen.taps[index], seen.inputs[index].shape[-1]
    sizes = {"params": sum(p.numel() for p in block.parameters()), "width": width}
    if taps["A"]:
        sizes["ffn"] = taps["A"][0].shape[-1]
    if taps["S"]:
        rows = sum(S.numel() // S.shape[-1] for S in taps["S"])
        sizes["heads"] = rows // seen.outputs[index].shape[1]
    return sizes


def _attention(block: nn.Module, layout: Layout) -> int:
    """Parameters of the block's token-mixing half, without norms."""
    return sum(
        parameter.numel()
        for name, module in block.named_modules()
        if not is_norm(module)
        for key, parameter in module.named_parameters(recurse=False)
        if layout.part(f"{name}.{key}" if name else key) == "attention"
    )


def _end_sizes(
    model: nn.Module, blocks: Sequence[nn.Module], before: set[int], ran: set[int]
) -> dict[str, Sizes]:
    """The parameters of each end: all that begins before the first block, all after but norms.

    Modules that the forward pass does not run belong to the head, which a loss may run.
    """
    counted = {id(parameter) for block in blocks for parameter in block.parameters()}
    totals = {EMBEDDING: 0, HEAD: 0}
    for end, of_end in ((EMBEDDING, True), (HEAD, False)):
        for module in model.modules():
            if (id(module) in before) != of_end:
                continue
            if end == HEAD and is_norm(module) and id(module) in ran:
                continue
            for parameter in module.parameters(recurse=False):
                if id(parameter) not in counted:
                    counted.add(id(parameter))
                    totals[end] += parameter.numel()
    return {end: {"params": total} for end, total in totals.items()}


def model_flops(model: nn.Module, inputs: Inputs, layout: Layout) -> int:
    """Floating-point operations from one input to the final hidden state, without the head."""
    counter = FlopCounterMode(display=False)
    device = next(model.parameters()).device
    with untouched(model, [], device), torch.no_grad(), counter:
        call(model, inputs[slice(0, 1)])
    counts = counter.get_flop_counts()
    root = type(model).__name__
    of_head = (counts.get(f"{root}.{name}", {}) for name in layout.head)
    return counter.get_total_flops() - sum(sum(of.values()) for of in of_head)
