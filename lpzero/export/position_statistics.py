"""How modules of formulas beyond the paper's form take statistics and sizes of a model.

Copied into them instead of `model_statistics.statistics`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from lpzero.export.model_statistics import (
    GRADIENTS,
    SOURCES,
    USES,
    Loss,
    find_blocks,
    mean_loss,
    set_up,
)

SIZES: tuple[str, ...] = ()  # the sizes of blocks in the formula
END_USES: dict[str, tuple[str, ...]] = {}  # the statistics that it reads at the ends
END_SIZES: dict[str, tuple[str, ...]] = {}  # the sizes of the ends
TAPPED: tuple[str, ...] = ()  # statistics at taps that it or a size of its needs

Position = Mapping[str, Any]


class Positions(NamedTuple):
    """What `score` takes: statistics and sizes of the blocks and of the ends."""

    blocks: list[dict[str, Any]]
    ends: dict[str, dict[str, Any]]


def statistics(
    model: nn.Module,
    inputs: Any,
    loss: Loss | None = None,
    blocks: Sequence[nn.Module] | None = None,
    taps: dict[str, Sequence[str]] | None = None,
    ends: Mapping[str, Sequence[Any]] | None = None,
    sizes: Mapping[str, Any] | None = None,
) -> Positions:
    """What `score` takes, from one forward and, if needed, one backward pass in eval mode.

    `loss(output, inputs)` gives one number, or one per sample, which are averaged; without it the
    engine's own is taken. `blocks` are
    `model.blocks`, or the members of the largest ModuleList. `taps` names the sub-modules of a
    block that put out A (FFN activations), H (what feeds the heads) and S (attention
    probabilities), as in {"A": ["mlp.act"]}; without it, modules with an attribute `statistic`.
    `ends` are the modules, or parameters, of the "embedding" and the "head", without it those that
    `model.ends()` gives; (parameter, axis) says which axis has the features. `sizes` are
    {"blocks": [{"params": 12}, ...], "ends": {"head": {"params": 3}}}; without it they are counted
    on the model. The model is left as it was.
    """
    found = list(blocks or find_blocks(model))
    given = ends_of(model, ends)
    weights = [[p for p in block.parameters() if p.ndim >= 2] for block in found]
    at_ends = {end: end_weights(end, given[end]) for end in END_USES}
    every: list[Tensor] = [weight for own in weights for weight in own]
    every += [weight for own in at_ends.values() for weight, _ in own]
    with ExitStack() as undo:
        tapped = tap(found, taps, undo)
        entered = catch_states(found, undo)
        state = catch_head(given.get("head", ()), undo)
        set_up(model, every, bool(GRADIENTS), undo)
        with torch.set_grad_enabled(bool(GRADIENTS)):
            output = model(inputs)
            if len(entered) < len(found):
                raise ValueError(f"of {len(found)} blocks only {len(entered)} were run")
            taken: list[dict[str, list[Any]]] = []
            for index, own in enumerate(tapped):
                read = {"tap": own, "weights": weights[index], "input": [entered[index]]}
                taken.append({name: named(read[SOURCES[name]], name, index) for name in USES})
            states = {"embedding": entered[0], "head": state[0] if state else first(output)}
            for end, names in END_USES.items():
                of_end: dict[bool, list[Any]] = {True: [*at_ends[end]], False: [states[end]]}
                taken.append({name: list(of_end[SOURCES[name] == "weights"]) for name in names})
            if GRADIENTS:
                differentiate(mean_loss(model, output, inputs, loss), taken)
        positions: list[dict[str, Any]] = [
            {name: [matrix(x) for x in of] for name, of in own.items()} for own in taken
        ]
    known = sizes or {}
    for index, block in enumerate(found):
        counted = known["blocks"][index] if "blocks" in known else None
        of_block = (block, entered[index], tapped[index])
        positions[index] |= block_sizes(*of_block) if counted is None else counted
    of_ends = dict(zip(END_USES, positions[len(found) :], strict=True))
    for end, position in of_ends.items():
        counted = known.get("ends", {}).get(end)
        position.update(end_sizes(end, given[end], states[end]) if counted is None else counted)
    return Positions(positions[: len(found)], of_ends)


def tap(
    blocks: Sequence[nn.Module], taps: dict[str, Sequence[str]] | None, undo: ExitStack
) -> list[dict[str, list[Tensor]]]:
    """For each block and tapped statistic a list, which the pass fills."""
    taken: list[dict[str, list[Tensor]]] = [{name: [] for name in TAPPED} for _ in blocks]

    def keep_in(tensors: list[Tensor]) -> Any:
        return lambda _, __, output: tensors.append(first(output))

    for block, own in zip(blocks, taken, strict=True):
        for name, module in block.named_modules():
            for kind in TAPPED:
                marked = getattr(module, "statistic", None) == kind
                if marked if taps is None else name in taps.get(kind, ()):
                    undo.callback(module.register_forward_hook(keep_in(own[kind])).remove)
    return taken


def named(read: Any, name: str, index: int) -> list[Any]:
    """The tensors of one statistic of a block."""
    tensors = list(read[name] if isinstance(read, dict) else read)
    if not tensors:
        raise ValueError(f"block {index} has no {name}: name its sub-modules in `taps`")
    return tensors


def first(output: Any) -> Tensor:
    """The output, or the first of several."""
    found: Tensor = output[0] if isinstance(output, (tuple, list)) else output
    return found


def tensor_of(read: Any) -> Tensor:
    """The tensor itself; a weight of an end comes with the axis of its features."""
    found: Tensor = read[0] if isinstance(read, tuple) else read
    return found


def matrix(read: Any) -> Tensor:
    """The tensor, a weight of an end as features x the rest."""
    found: Tensor = read[0].movedim(read[1], 0).flatten(1) if isinstance(read, tuple) else read
    return found


def differentiate(loss: Tensor, taken: list[dict[str, list[Any]]]) -> None:
    """Put the loss's gradients in the place of the tensors that they are wanted at."""
    places = [own[name] for own in taken for name in GRADIENTS if name in own]
    wanted = {id(tensor_of(x)): tensor_of(x) for of in places for x in of}
    found = torch.autograd.grad(loss, list(wanted.values()), materialize_grads=True)
    gradients = dict(zip(wanted, found, strict=True))
    for of in places:
        of[:] = [
            (gradients[id(x[0])], x[1]) if isinstance(x, tuple) else gradients[id(x)] for x in of
        ]


def catch_states(blocks: Sequence[nn.Module], undo: ExitStack) -> dict[int, Tensor]:
    """By block, filled by the pass: its input. The first is cut off as a leaf without ends."""
    states: dict[int, Tensor] = {}

    def enter(index: int) -> Any:
        def hook(_: nn.Module, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
            if not arguments:
                raise ValueError(f"block {index} takes its input by keyword; pass it by position")
            x, *rest = arguments
            if index == 0 and GRADIENTS and not (END_USES and x.requires_grad):
                x = x.detach().requires_grad_()
            states[index] = x
            return (x, *rest)

        return hook

    for index, block in enumerate(blocks):
        undo.callback(block.register_forward_pre_hook(enter(index)).remove)
    return states


def catch_head(given: Sequence[Any], undo: ExitStack) -> list[Tensor]:
    """Filled by the pass: what enters the head, if it was given as a module."""
    states: list[Tensor] = []

    def hook(_: nn.Module, arguments: tuple[Any, ...]) -> None:
        states.append(arguments[0])

    modules = [one for one in given if isinstance(one, nn.Module)]
    if modules:
        undo.callback(modules[0].register_forward_pre_hook(hook).remove)
    return states


def ends_of(model: nn.Module, ends: Mapping[str, Sequence[Any]] | None) -> dict[str, Sequence[Any]]:
    """The modules or weights of the ends that the formula reads."""
    own: Any = getattr(model, "ends", None)
    given = ends if ends is not None else own() if callable(own) else {}
    for end in END_USES:
        if end not in given:
            raise ValueError(f"the formula reads the {end}: give ends={{{end!r}: [modules]}}")
    return {end: list(given[end]) for end in END_USES}


def end_weights(end: str, given: Sequence[Any]) -> list[tuple[Tensor, int]]:
    """The weights of an end with at least two axes, each with the axis of its features.

    That is the last axis of an nn.Embedding and of weights at the head, else the first.
    """
    found: list[tuple[Tensor, int]] = []
    for one in given:
        if isinstance(one, nn.Module):
            for module in one.modules():
                is_last = end == "head" or isinstance(module, nn.Embedding)
                own = [p for p in module.parameters(recurse=False) if p.ndim >= 2]
                found += [(weight, weight.ndim - 1 if is_last else 0) for weight in own]
        elif isinstance(one, Tensor):
            found.append((one, one.ndim - 1 if end == "head" else 0))
        else:
            weight, axis = one if isinstance(one, tuple) else (one.parameter, one.features)
            found.append((weight, axis))
    return found


def block_sizes(block: nn.Module, entered: Tensor, tapped: Mapping[str, Any]) -> dict[str, float]:
    """The sizes of a block that the formula reads, counted on the model."""
    found: dict[str, float] = {}
    for name in SIZES:
        if name == "params":
            found[name] = sum(p.numel() for p in block.parameters())
        elif name == "width":
            found[name] = entered.shape[-1]
        else:
            source = {"ffn": "A", "heads": "S"}[name]
            if not tapped[source]:
                raise ValueError(f"{name} is counted on {source}: name it in `taps`, or give sizes")
            x = tapped[source][0]
            last = x.shape[-1]  # S has a row for each input, head and query, of so many keys
            found[name] = last if name == "ffn" else x.numel() / last**2 / len(entered)
            if found[name] != int(found[name]):
                raise ValueError(f"{name} cannot be counted on this model: give sizes")
    return found


def end_sizes(end: str, given: Sequence[Any], state: Tensor) -> dict[str, float]:
    """The sizes of an end that the formula reads, counted on its modules.

    An embedding is as wide as its first nn.Embedding, anything else as its state.
    """
    if not END_SIZES[end]:
        return {}
    modules = [one for one in given if isinstance(one, nn.Module)]
    if len(modules) < len(given):
        raise ValueError(f"the sizes of the {end} are counted on modules alone: give sizes")
    own = {id(p): p for one in modules for p in one.parameters()}
    inside = [m for one in modules for m in one.modules()]
    tables = [m.embedding_dim for m in inside if isinstance(m, nn.Embedding)]
    width = tables[0] if end == "embedding" and tables else state.shape[-1]
    counted = {"params": sum(p.numel() for p in own.values()), "width": width}
    return {name: counted[name] for name in END_SIZES[end]}
