"""Weights from a seed: every parameter is set here and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import torch
from torch import Tensor, nn

M = TypeVar("M", bound=nn.Module)


def allocate(
    make: Callable[[], M], seed: int, std: float, other_stds: Mapping[str, float] | None = None
) -> M:
    """The model in eval mode: matrices N(0, std), norms one, every other vector zero.

    `other_stds` maps the end of a parameter's name to a standard deviation of its own. The
    module is laid out without memory first, so that torch's own initialisation never runs and
    the global random state is left alone.
    """
    model, generator = _laid_out(make), torch.Generator().manual_seed(seed)
    norm_weights = {id(m.weight) for m in model.modules() if isinstance(m, nn.LayerNorm)}
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim >= 2:
                parameter.normal_(0.0, _std(name, std, other_stds or {}), generator=generator)
            else:
                parameter.fill_(1.0 if id(parameter) in norm_weights else 0.0)
    return model.eval()


def allocate_uniform(make: Callable[[], M], seed: int, bound: Callable[[str, Tensor], float]) -> M:
    """The model in eval mode, every parameter U(-b, b), b what `bound` gives for it; 0 gives 0."""
    model, generator = _laid_out(make), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            b = bound(name, parameter)
            parameter.uniform_(-b, b, generator=generator) if b else parameter.zero_()
    return model.eval()


def _laid_out(make: Callable[[], M]) -> M:
    with torch.device("meta"):
        model = make()
    model.to_empty(device="cpu")
    return model


def _std(name: str, std: float, other_stds: Mapping[str, float]) -> float:
    return next((value for end, value in other_stds.items() if name.endswith(end)), std)
