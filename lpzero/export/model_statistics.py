"""How exported modules extract the statistics of a model; copied into them like `runtime`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn

USES: tuple[str, ...] = ("W",)  # the statistics in the formula
SOURCES = {"W": "weights"}  # the tensors of a block that each one reads
GRADIENTS: tuple[str, ...] = ()  # those that are the loss's gradient at these tensors
LOSS = "auto"
BATCH_SEED = 0

Block = dict[str, Sequence[Tensor]]
Loss = Callable[[Any, Any], Tensor]


def statistics(
    model: nn.Module,
    inputs: Any,
    loss: Loss | None = None,
    blocks: Sequence[nn.Module] | None = None,
    taps: dict[str, Sequence[str]] | None = None,
) -> list[Block]:
    """The blocks for `score`, from one forward and, if needed, one backward pass in eval mode.

    `loss(output, inputs)` returns one number, or one per sample, which are averaged; the default
    is the engine's own loss. `blocks`
    defaults to `model.blocks`, or the members of the largest ModuleList. `taps` names the
    sub-modules of a block whose outputs are A (FFN activations), H (inputs of the heads) and S
    (attention probabilities), as in {"A": ["mlp.act"]}; the default is modules with an attribute
    `statistic`. The model is left unchanged.
    """
    found = list(blocks or find_blocks(model))
    weights = [[p for p in block.parameters() if p.ndim >= 2] for block in found]
    all_weights = [weight for own in weights for weight in own]
    needs_gradient = bool(GRADIENTS)
    with ExitStack() as undo:
        taken = tap(found, taps, undo)
        reads_inputs = needs_gradient or "input" in SOURCES.values()
        entered = catch_inputs(found, undo) if reads_inputs else {}
        set_up(model, all_weights, needs_gradient, undo)
        with torch.set_grad_enabled(needs_gradient):
            output = model(inputs)
            if reads_inputs and len(entered) < len(found):
                raise ValueError(f"of {len(found)} blocks only {len(entered)} were run")
            for index, statistic in enumerate(taken):
                for name in statistic:
                    if SOURCES[name] == "weights":
                        statistic[name] = list(weights[index])
                    elif SOURCES[name] == "input":
                        statistic[name] = [entered[index]]
                    if not statistic[name]:
                        needed = "name its sub-modules in `taps`"
                        raise ValueError(f"block {index} has no {name}: {needed}")
            if needs_gradient:
                value = mean_loss(model, output, inputs, loss)
                wanted = [x for statistic in taken for name in GRADIENTS for x in statistic[name]]
                gradients = iter(torch.autograd.grad(value, wanted, materialize_grads=True))
                for statistic in taken:
                    for name in GRADIENTS:
                        statistic[name] = [next(gradients) for _ in statistic[name]]
    return [dict(statistic) for statistic in taken]


def tap(
    blocks: Sequence[nn.Module], taps: dict[str, Sequence[str]] | None, undo: ExitStack
) -> list[dict[str, list[Tensor]]]:
    """For each block and statistic a list that the pass fills at the taps."""
    taken: list[dict[str, list[Tensor]]] = [{name: [] for name in USES} for _ in blocks]

    def keep_in(tensors: list[Tensor]) -> Any:
        def hook(_: nn.Module, __: Any, output: Any) -> None:
            tensors.append(output[0] if isinstance(output, (tuple, list)) else output)

        return hook

    for block, statistic in zip(blocks, taken, strict=True):
        for name, module in block.named_modules():
            for kind in (kind for kind in USES if SOURCES[kind] == "tap"):
                own = getattr(module, "statistic", None) == kind
                if own if taps is None else name in taps.get(kind, ()):
                    handle = module.register_forward_hook(keep_in(statistic[kind]))
                    undo.callback(handle.remove)
    return taken


def catch_inputs(blocks: Sequence[nn.Module], undo: ExitStack) -> dict[int, Tensor]:
    """The input of each block, filled by the pass; that of the first is detached, a leaf."""
    sources: dict[int, Tensor] = {}

    def enter(index: int) -> Any:
        def hook(_: nn.Module, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
            if not arguments:
                raise ValueError(f"block {index} takes its input by keyword; pass it by position")
            first, *rest = arguments
            sources[index] = first.detach().requires_grad_() if index == 0 else first
            return (sources[index], *rest)

        return hook

    for index, block in enumerate(blocks):
        undo.callback(block.register_forward_pre_hook(enter(index)).remove)
    return sources


def set_up(
    model: nn.Module, weights: Sequence[Tensor], needs_gradient: bool, undo: ExitStack
) -> None:
    """Eval mode, and gradients for frozen weights where they are needed."""
    for module in model.modules():
        undo.callback(setattr, module, "training", module.training)
    model.eval()
    for weight in weights:
        if needs_gradient and not weight.requires_grad:
            undo.callback(weight.requires_grad_, False)
            weight.requires_grad_()


def find_blocks(model: nn.Module) -> list[nn.Module]:
    """`model.blocks`, else the members of the ModuleList with the most parameters."""
    own = list(getattr(model, "blocks", ()))
    if own:
        return own
    lists: list[nn.Module] = [m for m in model.modules() if isinstance(m, nn.ModuleList)]
    if not lists:
        raise ValueError(f"{type(model).__name__} has no list of blocks; give blocks=[...]")
    sizes = [sum(p.numel() for p in found.parameters()) for found in lists]
    return list(lists[sizes.index(max(sizes))].children())


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
        drawn = torch.from_numpy(generator.integers(0, logits.shape[1], B)).to(logits.device)
        return nn.functional.cross_entropy(logits, drawn)
    direction = generator.standard_normal(tuple(output.shape), numpy.float32)
    return (output * torch.from_numpy(direction).to(output)).sum() / (B * T)
