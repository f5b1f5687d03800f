"""How exported modules take statistics and sizes of a model; copied into them as `runtime` is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn

# The statistics that the formula reads at the blocks and at each end, and the sizes.
USES: dict[str, tuple[str, ...]] = {"blocks": ("W",)}
SIZES: dict[str, tuple[str, ...]] = {"blocks": ()}
ENDS: tuple[str, ...] = ()
SOURCES = {"W": "weights"}  # the tensors that each statistic reads
TAPPED: tuple[str, ...] = ()  # statistics at taps that the formula or a size of it needs
GRADIENTS: tuple[str, ...] = ()  # statistics that are the loss's gradient at these tensors
LOSS = "auto"
BATCH_SEED = 0

Position = Mapping[str, Any]
Loss = Callable[[Any, Any], Tensor]


def statistics(
    model: nn.Module,
    inputs: Any,
    loss: Loss | None = None,
    blocks: Sequence[nn.Module] | None = None,
    taps: dict[str, Sequence[str]] | None = None,
    ends: Mapping[str, Sequence[Any]] | None = None,  # with ends
    sizes: Mapping[str, Any] | None = None,  # with sizes
) -> Any:
    """The blocks (and ends) for `score`, from one forward and, if needed, one backward pass.

    `loss(output, inputs)` returns one number, or one per sample, which are averaged; the default is
    the engine's own loss. `blocks` defaults to `model.blocks`, or the members of the largest
    ModuleList. `taps` names the sub-modules of a block whose outputs are A (FFN activations), H
    (inputs of the heads) and S (attention probabilities), as in {"A": ["mlp.act"]}; the default is
    modules with an attribute `statistic`. The model runs in eval mode and is left unchanged.
    """
    found = list(blocks or find_blocks(model))
    n = len(found)
    weights: list[Any] = [[p for p in block.parameters() if p.ndim >= 2] for block in found]
    given = ends_of(model, ends)  # with ends
    at_ends = {end: end_weights(end, given[end]) for end in ENDS}  # with ends
    with ExitStack() as undo:
        tapped = tap(found, taps, undo)  # with taps
        entered = catch_inputs(found, undo)  # with inputs
        head = catch_head(given.get("head", ()), undo)  # with ends
        for module in model.modules():
            undo.callback(setattr, module, "training", module.training)
        model.eval()
        require_gradients([x for of in weights for x in of], undo)  # with gradients
        require_gradients([x for end in ENDS for x, _ in at_ends[end]], undo)  # with gradients ends
        with torch.set_grad_enabled(bool(GRADIENTS)):
            output = model(inputs)
            if len(entered) < n:  # with inputs
                raise ValueError(f"of {n} blocks only {len(entered)} were run")  # with inputs
            taken: list[dict[str, Any]] = []
            for index in range(n):
                tensors = {"weights": weights[index]}
                tensors["input"] = [entered[index]]  # with inputs
                tensors |= tapped[index]  # with taps
                taken.append(by_statistic(tensors, index))
            states = {"embedding": entered[0], "head": [*head, first(output)][0]}  # with ends
            taken += [end_tensors(end, at_ends[end], states[end]) for end in ENDS]  # with ends
            differentiate(mean_loss(model, output, inputs, loss), taken)  # with gradients
    for index, block in enumerate(found):  # with sizes
        own = block_sizes(block, entered[index], tapped[index], sizes, index)  # with sizes
        taken[index].update(own)  # with sizes
    for end, position in zip(ENDS, taken[n:], strict=True):  # with ends
        put_features_first(position, [axis for _, axis in at_ends[end]])  # with ends
        position.update(end_sizes(end, given[end], states[end], sizes))  # with ends sizes
    if ENDS:  # with ends
        return taken[:n], dict(zip(ENDS, taken[n:], strict=True))  # with ends
    return taken


def find_blocks(model: nn.Module) -> list[nn.Module]:
    """`model.blocks`, else the members of the ModuleList with the most parameters."""
    own = list(getattr(model, "blocks", ()))
    if own:
        return own
    lists: list[nn.Module] = [m for m in model.modules() if isinstance(m, nn.ModuleList)]
    if not lists:
        raise ValueError(f"{type(model).__name__} has no list of blocks; give blocks=[...]")
    return list(max(lists, key=lambda m: sum(p.numel() for p in m.parameters())).children())


def tap(
    blocks: Sequence[nn.Module], taps: dict[str, Sequence[str]] | None, undo: ExitStack
) -> list[dict[str, list[Tensor]]]:
    """For each block and tapped statistic a list, which the pass fills."""
    tapped: list[dict[str, list[Tensor]]] = [{name: [] for name in TAPPED} for _ in blocks]

    def keep_in(tensors: list[Tensor]) -> Any:
        return lambda _, __, output: tensors.append(first(output))

    for block, tensors in zip(blocks, tapped, strict=True):
        for path, module in block.named_modules():
            for name in TAPPED:
                is_marked = getattr(module, "statistic", None) == name
                if is_marked if taps is None else path in taps.get(name, ()):
                    undo.callback(module.register_forward_hook(keep_in(tensors[name])).remove)
    return tapped


def first(output: Any) -> Tensor:
    """The output, or the first of several."""
    tensor: Tensor = output[0] if isinstance(output, (tuple, list)) else output
    return tensor


def catch_inputs(blocks: Sequence[nn.Module], undo: ExitStack) -> dict[int, Tensor]:
    """The input of each block, filled by the pass; without ends a gradient stops at the first."""
    entered: dict[int, Tensor] = {}

    def enter(index: int) -> Any:
        def hook(_: nn.Module, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
            if not arguments:
                raise ValueError(f"block {index} takes its input by keyword; pass it by position")
            x, *rest = arguments
            is_leaf = index == 0  # with gradients
            is_leaf = is_leaf and not x.requires_grad  # with gradients ends
            x = x.detach().requires_grad_() if is_leaf else x  # with gradients
            entered[index] = x
            return (x, *rest)

        return hook

    for index, block in enumerate(blocks):
        undo.callback(block.register_forward_pre_hook(enter(index)).remove)
    return entered


def by_statistic(tensors: Mapping[str, Sequence[Tensor]], index: int) -> dict[str, Any]:
    """The tensors of a block by statistic; at taps they are named so already."""
    taken = {}
    for name in USES["blocks"]:
        taken[name] = list(tensors[name if SOURCES[name] == "tap" else SOURCES[name]])
        if not taken[name]:
            raise ValueError(f"block {index} has no {name}: name its sub-modules in `taps`")
    return taken


def require_gradients(weights: Sequence[Tensor], undo: ExitStack) -> None:
    """Make frozen weights require gradients until the end of the pass."""
    for weight in weights:
        if not weight.requires_grad:
            undo.callback(weight.requires_grad_, False)
            weight.requires_grad_()


def differentiate(loss: Tensor, taken: Sequence[dict[str, Any]]) -> None:
    """Put the loss's gradients in the place of the tensors that they are wanted at."""
    places = [position[name] for position in taken for name in GRADIENTS if name in position]
    wanted = [x for tensors in places for x in tensors]
    gradients = iter(torch.autograd.grad(loss, wanted, materialize_grads=True))
    for tensors in places:
        tensors[:] = [next(gradients) for _ in tensors]


def mean_loss(model: nn.Module, output: Any, inputs: Any, loss: Loss | None) -> Tensor:
    """The given loss as one number, or the engine's own."""
    if loss is None:
        return engine_loss(model, output, inputs)
    value = loss(output, inputs)
    if not isinstance(value, Tensor) or value.ndim > 1:
        found = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
        raise ValueError(f"the loss gave {found}, expected one number or one per sample")
    return value.mean()


def engine_loss(model: Any, output: Tensor, inputs: Tensor) -> Tensor:
    """The loss of the engine's own models, whose output is the final hidden state (B, T, d).

    auto: next-token if the model has `token_losses`, else cotangent. Labels and cotangents are
    drawn with NumPy.
    """
    B, T = output.shape[:2]
    if LOSS == "ones":
        return output.sum() / (B * T)
    if LOSS == "next-token" or (LOSS == "auto" and hasattr(model, "token_losses")):
        losses: Tensor = model.token_losses(output, inputs)  # cross-entropy of each next token
        return losses.sum() / (B * (T - 1))
    import numpy

    stream = numpy.random.Philox(numpy.random.SeedSequence([BATCH_SEED, 1]))
    generator = numpy.random.Generator(stream)
    if LOSS == "labels":
        logits: Tensor = model.logits(output)
        labels = torch.from_numpy(generator.integers(0, logits.shape[1], B)).to(logits.device)
        return nn.functional.cross_entropy(logits, labels)
    direction = generator.standard_normal(tuple(output.shape), numpy.float32)
    return (output * torch.from_numpy(direction).to(output)).sum() / (B * T)


def ends_of(model: nn.Module, ends: Mapping[str, Sequence[Any]] | None) -> dict[str, Sequence[Any]]:
    """The ends that the formula reads: `ends`, or those of the engine's own models, `model.ends()`.

    `ends` are {"embedding": [...], "head": [...]} of modules, parameters, or pairs of a parameter
    and the axis of its features.
    """
    own: Any = getattr(model, "ends", None)
    given = ends if ends is not None else own() if callable(own) else {}
    for end in ENDS:
        if end not in given:
            raise ValueError(f"the formula reads the {end}: give ends={{{end!r}: [modules]}}")
    return {end: list(given[end]) for end in ENDS}


def catch_head(given: Sequence[Any], undo: ExitStack) -> list[Tensor]:
    """Filled by the pass: what enters the head, if it was given as a module."""
    states: list[Tensor] = []

    def hook(_: nn.Module, arguments: tuple[Any, ...]) -> None:
        states.append(arguments[0])

    modules = [part for part in given if isinstance(part, nn.Module)]
    if modules:
        undo.callback(modules[0].register_forward_pre_hook(hook).remove)
    return states


def end_weights(end: str, given: Sequence[Any]) -> list[tuple[Tensor, int]]:
    """The weights of an end with at least two axes, each with the axis of its features.

    That is the last axis of an nn.Embedding and of weights at the head, else the first.
    """
    weights: list[tuple[Tensor, int]] = []
    for part in given:
        if isinstance(part, nn.Module):
            for module in part.modules():
                is_last = end == "head" or isinstance(module, nn.Embedding)
                own = [p for p in module.parameters(recurse=False) if p.ndim >= 2]
                weights += [(weight, weight.ndim - 1 if is_last else 0) for weight in own]
        elif isinstance(part, Tensor):
            weights.append((part, part.ndim - 1 if end == "head" else 0))
        else:
            weights.append(part if isinstance(part, tuple) else (part.parameter, part.features))
    return weights


def end_tensors(end: str, weights: Sequence[tuple[Tensor, int]], state: Tensor) -> dict[str, Any]:
    """The tensors of an end by statistic: its weights or its state."""
    tensors = {name: [state] for name in USES[end] if SOURCES[name] != "weights"}
    return {name: tensors.get(name, [weight for weight, _ in weights]) for name in USES[end]}


def put_features_first(position: dict[str, Any], axes: Sequence[int]) -> None:
    """Lay out the weights of an end, and gradients at them, as features x the rest."""
    for name in position:
        if SOURCES[name] == "weights":
            pairs = zip(position[name], axes, strict=True)
            position[name] = [weight.movedim(axis, 0).flatten(1) for weight, axis in pairs]


def block_sizes(
    block: nn.Module,
    entered: Tensor,
    tapped: Mapping[str, Sequence[Tensor]],
    sizes: Mapping[str, Any] | None,
    index: int,
) -> Mapping[str, float]:
    """The sizes of a block: those given, else counted on the model.

    `sizes` are {"blocks": [{"params": 12}, ...], "ends": {"head": {"params": 3}}}.
    """
    if sizes and "blocks" in sizes:
        given: Mapping[str, float] = sizes["blocks"][index]
        return given
    counted: dict[str, float] = {}
    for name in SIZES["blocks"]:
        if name == "params":
            counted[name] = sum(p.numel() for p in block.parameters())
        elif name == "width":
            counted[name] = entered.shape[-1]
        else:
            source = {"ffn": "A", "heads": "S"}[name]
            if not tapped[source]:
                raise ValueError(f"{name} is counted on {source}: name it in `taps`, or give sizes")
            x = tapped[source][0]
            last = x.shape[-1]  # S has a row for each input, head and query, of so many keys
            counted[name] = last if name == "ffn" else x.numel() / last**2 / len(entered)
            if counted[name] != int(counted[name]):
                raise ValueError(f"{name} cannot be counted on this model: give sizes")
    return counted


def end_sizes(
    end: str, given: Sequence[Any], state: Tensor, sizes: Mapping[str, Any] | None
) -> Mapping[str, float]:
    """The sizes of an end: those given, else counted on its modules.

    An embedding is as wide as its first nn.Embedding, anything else as its state.
    """
    known: Mapping[str, float] | None = (sizes or {}).get("ends", {}).get(end)
    if known is not None or not SIZES[end]:
        return known or {}
    modules = [part for part in given if isinstance(part, nn.Module)]
    if len(modules) < len(given):
        raise ValueError(f"the sizes of the {end} are counted on modules alone: give sizes")
    own = {id(p): p for part in modules for p in part.parameters()}
    inside = [m for part in modules for m in part.modules()]
    tables = [m.embedding_dim for m in inside if isinstance(m, nn.Embedding)]
    width = tables[0] if end == "embedding" and tables else state.shape[-1]
    counted = {"params": sum(p.numel() for p in own.values()), "width": width}
    return {name: counted[name] for name in SIZES[end]}
