"""The statistics of an untrained network, by position, from one forward and one backward.

In: any torch model with blocks whose taps (see `spaces.taps`) or whose `Layout` mark the tapped
statistics, and a batch of token ids (B, T) or images (B, 3, H, W). Out: for each block, and for the
embedding and the head of a model that names them (see `spaces.taps`), or whose layout does, a dict
from statistic to a list of matrices.
Tensors become two-dimensional: weights of a block as the model stores them with trailing axes
joined, those of an end features x the rest, all other tensors rows x features; the batch is the
outermost axis of the rows.

`primitives.statistics` declares what each statistic reads (LPZero, section 3.2); this module finds
the tensors of each source. The model is left unchanged: hooks are removed, and parameters, grads,
flags and random state are as before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from lpzero.statistics import OURS, StatisticsError
from lpzero.statistics.inputs import Inputs, NamedInputs, read_inputs
from lpzero.statistics.isolation import resolve_device, single_thread, untouched
from lpzero.statistics.layout import Layout, find_blocks, first_tensor
from lpzero.statistics.layout_finder import layout_for
from lpzero.statistics.objective import Loss, Objective, named_loss, objective
from lpzero.statistics.trace import Trace, named_weights, trace
from primitives.statistics import STATISTICS, Statistic, StatisticSource
from primitives.tensors import Matrix, columns_that_fit, kept_columns
from spaces.base import Space
from spaces.taps import EMBEDDING, HEAD, EndWeight, Tap, ends_of

PositionStatistics = dict[str, list[Matrix]]  # values are torch tensors


@dataclass(frozen=True, slots=True, eq=False)
class NetworkStatistics:
    """The statistics of each block, and of each end that the model names: `embedding`, `head`.

    An end has the statistics declared `at_ends`: of its weights, and of the state there, which is
    what enters the first block or the head.
    """

    blocks: list[PositionStatistics]
    ends: dict[str, PositionStatistics]


# What a statistic reads at a position; a tapped value was cut when it passed.
Read = Tensor | EndWeight | Matrix
EndWeights = Mapping[str, Sequence[EndWeight]]
# From a pass, its blocks, a block's index and a statistic to the tensors that it reads there.
Rule = Callable[[Trace[Any], Sequence[nn.Module], int, str], Sequence[Any]]

RULES: Mapping[StatisticSource, Rule] = {
    StatisticSource.TAP: lambda seen, blocks, index, name: seen.taps[index][name],
    StatisticSource.INPUT: lambda seen, blocks, index, name: [seen.inputs[index]],
    StatisticSource.WEIGHTS: lambda seen, blocks, index, name: weight_matrices(blocks[index]),
}


def of_architecture(
    space: Space[Any],
    arch: Any,
    *,
    seed: int = 0,
    batch_seed: int = 0,
    loss: str = "auto",
    device: str = "cpu",
    chunk: int | None = None,
    limit: int | None = None,
    batch: Tensor | None = None,
    definitions: str = OURS,
) -> NetworkStatistics:
    """The statistics of one architecture with weights of `seed` on `batch`, or its space's own.

    See `extract`; single-threaded, so that every machine with the same torch gets the same numbers.
    """
    model = space.build(arch, seed).to(resolve_device(device))
    batch = space.batch(batch_seed) if batch is None else batch
    with single_thread():
        layout = layout_for(space, model, batch)
        name = loss if layout is None else named_loss(model, loss, read_inputs(batch, model))
        return extract(
            model,
            batch,
            loss=name,
            seed=batch_seed,
            chunk=chunk,
            limit=limit,
            layout=layout,
            definitions=definitions,
        )


def extract(
    model: nn.Module,
    tokens: Tensor | NamedInputs,
    *,
    loss: str | Loss = "auto",
    seed: int = 0,
    chunk: int | None = None,
    limit: int | None = None,
    with_ends: bool = True,
    layout: Layout | None = None,
    names: Collection[str] | None = None,
    definitions: str = OURS,
) -> NetworkStatistics:
    """The statistics of each position on `tokens` (B, T), or images; the model is left as it was.

    `loss`: "next-token", "labels", "cotangent", "ones", "auto" (next-token where the model has
    it, else cotangent), or a function (see `objective.Loss`). `seed` draws the labels or the
    cotangent. `chunk` sequences go through the model at a time, to save memory; the result differs
    by rounding only. `limit` keeps as many columns as fit in that many elements per matrix; None
    keeps all. Without `with_ends` the ends are left out and nothing before the first block is
    differentiated. `layout` is for models without taps. `names` are the statistics to take, None
    all of them: without gradients among them nothing is differentiated at all. `definitions` say
    what H, W and G of a block are (`lpzero.statistics.DEFINITIONS`).
    """
    wanted = {key: one for key, one in STATISTICS.items() if names is None or key in names}
    if layout is None:
        blocks = find_blocks(model)
        _check_taps(model, blocks)
    else:
        blocks = layout.find_blocks(model)
    ends = _ends(model, layout) if with_ends else {}
    device = next(model.parameters()).device
    tokens = read_inputs(tokens, model)
    step = chunk or len(tokens)
    parts: list[list[PositionStatistics]] = []
    weights: list[Tensor] = [w for block in blocks for w in weight_matrices(block)]
    weights += [weight.parameter for of_end in ends.values() for weight in of_end]
    with untouched(model, weights, device):
        part_loss = objective(model, loss, tokens, seed)
        for start in range(0, len(tokens), step):
            part = slice(start, min(start + step, len(tokens)))
            parts.append(
                _one_pass(
                    model,
                    blocks,
                    ends,
                    tokens,
                    part,
                    part_loss,
                    limit,
                    layout,
                    wanted,
                    definitions == OURS,
                )
            )
    joined = [_joined(list(of_position)) for of_position in zip(*parts, strict=True)]
    n = len(blocks)
    return NetworkStatistics(joined[:n], dict(zip(ends, joined[n:], strict=True)))


def weight_matrices(block: nn.Module) -> list[nn.Parameter]:
    """The block's parameters with at least two axes, in the order of their names in the model."""
    return [weight for _, weight in named_weights(block)]


def _ends(model: nn.Module, layout: Layout | None) -> EndWeights:
    return (layout.ends(model) if layout is not None else {}) or ends_of(model)


def _check_taps(model: nn.Module, blocks: Sequence[nn.Module]) -> None:
    marked = {m.statistic for block in blocks for m in block.modules() if isinstance(m, Tap)}
    if not marked:
        raise StatisticsError(f"the blocks of {type(model).__name__} carry no taps (spaces.taps)")
    for name in sorted(marked):
        if name not in STATISTICS or STATISTICS[name].source is not StatisticSource.TAP:
            raise StatisticsError(
                f"{type(model).__name__} has a tap {name!r}, which is not declared as a tapped"
                " statistic in primitives.statistics"
            )


def _one_pass(
    model: nn.Module,
    blocks: Sequence[nn.Module],
    ends: EndWeights,
    tokens: Inputs,
    part: slice,
    part_loss: Objective,
    limit: int | None,
    layout: Layout | None,
    wanted: Mapping[str, Statistic],
    is_ours: bool,
) -> list[PositionStatistics]:
    """One forward and one backward of a part of the batch: the blocks, then the ends."""
    cut = _Cut(limit, len(tokens) / (part.stop - part.start))

    def keep(name: str, tensor: Tensor) -> Tensor | Matrix:
        # Copied immediately, because a model may change the tensor in place later.
        statistic = STATISTICS[name]
        return tensor if statistic.is_gradient else cut(statistic, tensor)

    tapped = [name for name, one in wanted.items() if one.source is StatisticSource.TAP]
    seen = trace(
        model, blocks, tokens[part], tapped, keep, layout=layout, reaches_embedding=bool(ends)
    )
    read: list[dict[str, Sequence[Read]]] = [
        {name: RULES[one.source](seen, blocks, index, name) for name, one in wanted.items()}
        for index in range(len(blocks))
    ]
    if not is_ours:
        usual = layout or Layout()
        read = [_as_released(of, block, usual) for of, block in zip(read, blocks, strict=True)]
    read += [_read_end(end, weights, seen, wanted) for end, weights in ends.items()]
    gradients: dict[int, Tensor] = {}
    if any(one.is_gradient for one in wanted.values()):
        gradients = _gradients(part_loss(seen.output, tokens[part], part), read)

    return _taken(read, gradients, cut)


def _taken(
    read: Sequence[Mapping[str, Sequence[Read]]], gradients: Mapping[int, Tensor], cut: _Cut
) -> list[PositionStatistics]:
    """The statistics of each position, cut; gradients by the ids of their tensors."""

    def taken(statistic: Statistic, one: Read) -> Matrix:
        if isinstance(one, Matrix):
            return one
        tensor = gradients[id(_tensor(one))] if statistic.is_gradient else _tensor(one)
        return cut(statistic, one.matrix(tensor) if isinstance(one, EndWeight) else tensor)

    return [
        {name: [taken(STATISTICS[name], one) for one in of] for name, of in position.items()}
        for position in read
    ]


def of_pass(
    seen: Trace[Any],
    blocks: Sequence[nn.Module],
    gradients: Mapping[int, Tensor],
    names: Collection[str],
    limit: int | None,
) -> NetworkStatistics:
    """The statistics of the blocks, as `extract` gives them, from a pass of the whole batch.

    `gradients` are those at the blocks' weights and inputs, by the ids of the tensors.
    """
    wanted = {name: one for name, one in STATISTICS.items() if name in names}
    read = [
        {name: RULES[one.source](seen, blocks, index, name) for name, one in wanted.items()}
        for index in range(len(blocks))
    ]
    return NetworkStatistics(_taken(read, gradients, _Cut(limit, 1.0)), {})


def _as_released(
    read: Mapping[str, Sequence[Any]], block: nn.Module, layout: Layout
) -> dict[str, Sequence[Any]]:
    """What the statistics of a block read, with H, W and G as the authors' code takes them."""
    wanted = set(map(id, _operation_weights(block, layout)))

    def taken(name: str, tensors: Sequence[Any]) -> Sequence[Any]:
        if STATISTICS[name].is_of_weights:
            return [tensor for tensor in tensors if id(tensor) in wanted]
        return tensors[:1] if name == "H" else tensors

    return {name: taken(name, tensors) for name, tensors in read.items()}


def _operation_weights(block: nn.Module, layout: Layout) -> list[nn.Parameter]:
    """The weights of the Linears that mix tokens, without the one after the heads."""
    weights = [
        weight
        for name, weight in block.named_parameters()
        if weight.ndim == 2
        and name.endswith("weight")
        and layout.part(name) == "attention"
        and not any(name.startswith(f"{heads}.") for heads in layout.heads)
    ]
    if not weights:
        raise StatisticsError(
            f"{type(block).__name__} has no Linears that mix tokens, which --definitions released"
            " reads as W and G; use --definitions ours"
        )
    return weights


def _read_end(
    end: str, weights: Sequence[EndWeight], seen: Trace[Any], wanted: Mapping[str, Statistic]
) -> dict[str, Sequence[Read]]:
    """What the statistics that an end has read there: its weights, or the state."""
    final = first_tensor(seen.output) if seen.head_input is None else seen.head_input
    state = {EMBEDDING: seen.inputs[0], HEAD: final}[end]
    return {
        name: weights if one.is_of_weights else [state]
        for name, one in wanted.items()
        if one.at_ends
    }


def _gradients(loss: Tensor, read: Sequence[Mapping[str, Sequence[Read]]]) -> dict[int, Tensor]:
    """The loss's gradient at every tensor that a statistic wants it at, by the tensor's id.

    Only what leads to these tensors is differentiated, and no `.grad` is ever filled.
    """
    wanted = {
        id(tensor): tensor
        for position in read
        for name, of in position.items()
        if STATISTICS[name].is_gradient
        for tensor in map(_tensor, of)
    }
    gradients = torch.autograd.grad(loss, list(wanted.values()), materialize_grads=True)
    return dict(zip(wanted, gradients, strict=True))


def _tensor(one: Read) -> Tensor:
    if isinstance(one, Matrix):
        values: Tensor = one.values
        return values
    return one.parameter if isinstance(one, EndWeight) else one


@dataclass(frozen=True, slots=True)
class _Cut:
    """Copies tensors as matrices; the batch is one of `n_parts` parts of the whole batch."""

    limit: int | None
    n_parts: float

    def __call__(self, statistic: Statistic, tensor: Tensor) -> Matrix:
        """A copy of the tensor, with as many columns as fit for the rows of the whole batch."""
        if statistic.is_of_weights:
            return self._copy(tensor.flatten(1), 1.0)
        return self._copy(tensor, self.n_parts)

    def _copy(self, values: Tensor, n_parts: float) -> Matrix:
        values = values.detach()
        width = values.shape[-1]
        rows = round(values.numel() / width * n_parts)
        kept = columns_that_fit(rows, width, self.limit)
        if kept < width:
            columns = _columns(width, kept, values.device)
            # index_select is faster, but copies the whole of a transposed word table first.
            picked = (
                values.index_select(-1, columns) if values.is_contiguous() else values[..., columns]
            )
            return Matrix(picked.reshape(-1, kept), width)
        return Matrix(values.reshape(-1, width).clone(), width)


@lru_cache(maxsize=256)
def _columns(width: int, kept: int, device: torch.device) -> Tensor:
    return torch.from_numpy(kept_columns(width, kept)).to(device)


def _joined(parts: list[PositionStatistics]) -> PositionStatistics:
    """One position's statistics over all parts of the batch: rows side by side, gradients added."""
    if len(parts) == 1:
        return parts[0]
    return {
        name: [
            _join(STATISTICS[name], same) for same in zip(*(p[name] for p in parts), strict=True)
        ]
        for name in parts[0]
    }


def _join(statistic: Statistic, parts: Sequence[Matrix]) -> Matrix:
    """One tensor over all parts of the batch."""
    values: Any
    if not statistic.is_of_weights:
        values = torch.cat([part.values for part in parts])
    elif statistic.is_gradient:
        values = sum(part.values for part in parts)
    else:
        return parts[0]
    return Matrix(values, parts[0].true_columns)
