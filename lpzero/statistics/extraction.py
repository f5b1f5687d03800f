"""The six statistics of an untrained network, block by block, from one forward and one backward.

In: any torch model with `blocks` whose taps (see `spaces.taps`) mark A, H and S, and a batch of
token ids (B, T) or images (B, 3, H, W). Out: for each block a dict from statistic to a list of
matrices. All matrices are two-dimensional: A, H, J tokens x features, S (batch, heads, queries) x
keys, W and G as the model stores them with trailing axes joined. The batch is the outermost axis
of A, H, S and J.

The model is left as it was: hooks removed, parameters, grads, flags and random state untouched.
Section 3.2 of LPZero names the statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import torch
from torch import Tensor, nn

from lpzero.sketches.sketch import SketchOptions
from lpzero.statistics.isolation import (
    StatisticsError,
    as_input,
    resolve_device,
    single_thread,
    untouched,
)
from lpzero.statistics.losses import Objective, objective
from primitives.tensors import columns_that_fit, kept_columns
from spaces.base import Space
from spaces.taps import Tap


@dataclass(frozen=True, slots=True, eq=False)
class CutTensor:
    """One matrix of a statistic: values (rows, kept columns), and its width before the cut."""

    values: Tensor
    true_columns: int


BlockStatistics = dict[str, list[CutTensor]]


def of(
    space: Space[Any], arch: Any, options: SketchOptions | None = None, device: str = "auto"
) -> list[dict[str, list[Tensor]]]:
    """The whole matrices of one architecture on its space's batch: blocks[i]["A"][j] (rows, cols).

    For looking; `options.limit` is ignored because nothing is cut.
    """
    options = options or SketchOptions()
    model = space.build(arch, options.seed).to(resolve_device(device))
    tokens = space.batch(options.batch_seed)
    with single_thread():
        blocks = extract(model, tokens, loss=options.loss, seed=options.batch_seed)
    return [{name: [p.values for p in pieces] for name, pieces in b.items()} for b in blocks]


def extract(
    model: nn.Module,
    tokens: Tensor,
    *,
    loss: str = "auto",
    seed: int = 0,
    chunk: int | None = None,
    limit: int | None = None,
) -> list[BlockStatistics]:
    """The statistics of each block on `tokens` (B, T), or images; the model is left as it was.

    `loss`: "next-token", "labels", "cotangent", "ones", or "auto" (next-token where the model has
    it, else cotangent). `seed` draws the labels or the cotangent. `chunk` sequences go through the
    model at a time, to save memory; the result differs by rounding only. `limit` keeps as many
    columns as fit in that many elements per matrix; None keeps all.
    """
    blocks = _blocks(model)
    device = next(model.parameters()).device
    tokens = as_input(tokens, model)
    step = chunk or len(tokens)
    parts: list[list[BlockStatistics]] = []
    with untouched(model, [w for block in blocks for w in weight_matrices(block)], device):
        part_loss = objective(model, loss, tokens, seed)
        for start in range(0, len(tokens), step):
            part = slice(start, min(start + step, len(tokens)))
            parts.append(_one_pass(model, blocks, tokens, part, part_loss, limit))
    return [_joined(list(of_block)) for of_block in zip(*parts, strict=True)]


def weight_matrices(block: nn.Module) -> list[nn.Parameter]:
    """The block's parameters with at least two axes, in the order of their names in the model."""
    return [parameter for parameter in block.parameters() if parameter.ndim >= 2]


def _blocks(model: nn.Module) -> list[nn.Module]:
    blocks = list(getattr(model, "blocks", ()))
    if not blocks:
        raise StatisticsError(f"{type(model).__name__} has no `blocks` to take statistics from")
    if not any(isinstance(module, Tap) for block in blocks for module in block.modules()):
        raise StatisticsError(f"the blocks of {type(model).__name__} carry no taps (spaces.taps)")
    return blocks


def _one_pass(
    model: nn.Module,
    blocks: Sequence[nn.Module],
    tokens: Tensor,
    part: slice,
    part_loss: Objective,
    limit: int | None,
) -> list[BlockStatistics]:
    """One forward and one backward of a part of the batch."""
    n_parts = len(tokens) / (part.stop - part.start)
    take_rows = partial(_take, limit=limit, n_parts=n_parts)
    take_weight = partial(_take, limit=limit)
    with _listening(blocks, take_rows) as (taken, inputs):
        loss = part_loss(model(tokens[part]), tokens[part], part)
    for index in range(len(blocks)):
        if index not in inputs:
            raise StatisticsError(f"block {index} of {type(model).__name__} was never run")
    weights = [weight_matrices(block) for block in blocks]
    sources = [inputs[index] for index in range(len(blocks))]
    wanted = [*sources, *(weight for of_block in weights for weight in of_block)]
    # Only what leads to these tensors is differentiated, and no `.grad` is ever filled.
    gradients = iter(torch.autograd.grad(loss, wanted, materialize_grads=True))
    for statistics in taken:
        statistics["J"] = [take_rows(next(gradients))]
    for statistics, of_block in zip(taken, weights, strict=True):
        statistics["W"] = [take_weight(weight.flatten(1)) for weight in of_block]
        statistics["G"] = [take_weight(next(gradients).flatten(1)) for _ in of_block]
    return taken


@contextmanager
def _listening(
    blocks: Sequence[nn.Module], take: Callable[[Tensor], CutTensor]
) -> Iterator[tuple[list[BlockStatistics], dict[int, Tensor]]]:
    """Hooks that fill A, H, S of each block and note each block's input; removed on leaving."""
    taken: list[BlockStatistics] = [{"A": [], "H": [], "S": []} for _ in blocks]
    inputs: dict[int, Tensor] = {}

    def enter(index: int, _: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
        # The first block's input becomes a leaf: what comes before needs no gradient.
        source = args[0].detach().requires_grad_() if index == 0 else args[0]
        inputs[index] = source
        return (source, *args[1:])

    def tapped(index: int, tap: Tap, _: tuple[Any, ...], output: Tensor) -> None:
        taken[index][tap.statistic].append(take(output))

    handles = []
    try:
        for index, block in enumerate(blocks):
            handles.append(block.register_forward_pre_hook(partial(enter, index)))
            for module in block.modules():
                if isinstance(module, Tap):
                    handles.append(module.register_forward_hook(partial(tapped, index)))
        yield taken, inputs
    finally:
        for handle in handles:
            handle.remove()


def _take(values: Tensor, limit: int | None, n_parts: float = 1.0) -> CutTensor:
    """A copy of `values` (..., columns) in two dimensions, cut for the rows of the whole batch."""
    values = values.detach()
    width = values.shape[-1]
    rows = round(values.numel() / width * n_parts)
    kept = columns_that_fit(rows, width, limit)
    if kept < width:
        return CutTensor(
            values.index_select(-1, _columns(width, kept, values.device)).reshape(-1, kept), width
        )
    return CutTensor(values.reshape(-1, width).clone(), width)


@lru_cache(maxsize=256)
def _columns(width: int, kept: int, device: torch.device) -> Tensor:
    return torch.from_numpy(kept_columns(width, kept)).to(device)


def _joined(parts: list[BlockStatistics]) -> BlockStatistics:
    """One block's statistics over all parts of the batch: rows side by side, gradients added."""
    if len(parts) == 1:
        return parts[0]
    joined: BlockStatistics = {"W": parts[0]["W"]}
    for name, join in (
        ("G", sum),
        ("A", torch.cat),
        ("H", torch.cat),
        ("S", torch.cat),
        ("J", torch.cat),
    ):
        columns = zip(*(part[name] for part in parts), strict=True)
        joined[name] = [
            CutTensor(join([p.values for p in pieces]), pieces[0].true_columns)
            for pieces in columns
        ]
    return joined
