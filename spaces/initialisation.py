"""Weights from a seed: every parameter is set here and nowhere else."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeVar

import torch
from torch import Tensor, nn

M = TypeVar("M", bound=nn.Module)


def allocate(
    make: Callable[[], M],
    seed: int,
    std: float | Callable[[str, Tensor], float],
    other_stds: Mapping[str, float] | None = None,
) -> M:
    """The model in eval mode: matrices N(0, std), norms one, every other vector zero.

    `std` may be a function of a parameter's name and the parameter; `other_stds` maps the end of a
    name to a standard deviation of its own. BatchNorms have seen mean 0 and variance 1. The module
    is laid out without memory first, so that torch's own initialisation never runs and the global
    random state is left alone.
    """
    model, generator = _laid_out(make), torch.Generator().manual_seed(seed)
    norms = [m for m in model.modules() if isinstance(m, (nn.LayerNorm, nn.BatchNorm2d))]
    norm_weights = {id(m.weight) for m in norms}
    with torch.no_grad():
        for norm in norms:
            if isinstance(norm, nn.BatchNorm2d):
                norm.reset_running_stats()
        for name, parameter in model.named_parameters():
            if parameter.ndim >= 2:
                of_all = std(name, parameter) if callable(std) else std
                parameter.normal_(0.0, _std(name, of_all, other_stds or {}), generator=generator)
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


def fan_out_std(weight: Tensor, is_depthwise: bool = False) -> float:
    """sqrt(2 / fan out) of a convolution's weight (out, in / groups, k, k), as He et al. 2015."""
    outputs = 1 if is_depthwise else weight.shape[0]
    return math.sqrt(2.0 / (outputs * weight.shape[2] * weight.shape[3]))


def _laid_out(make: Callable[[], M]) -> M:
    with torch.device("meta"):
        model = make()
    model.to_empty(device="cpu")
    return model


def _std(name: str, std: float, other_stds: Mapping[str, float]) -> float:
    return next((value for end, value in other_stds.items() if name.endswith(end)), std)
