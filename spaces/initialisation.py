"""Weights from a seed: every parameter is set here and nowhere else.

A plain seed draws the matrices of a model one after another, so that the weights of a block depend
on all before it. A seed that is `ByName` draws each matrix by itself: one of the same name and
shape has the same weights in every network, whatever else the network has.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor, nn

M = TypeVar("M", bound=nn.Module)
# Normal numbers that weights drawn by name are copied from. A prime: no two rows of a matrix that
# is larger than all of them begin at the same number.
_N_NUMBERS = 2**24 - 3
_DRAWN_AS = "_drawn_as"


class ByName(int):
    """A seed under which each matrix is drawn from its own name and shape.

    A matrix is a run of one long list of normal numbers, beginning where a digest of its name and
    shape says (the noise table of Salimans et al. 2017), which takes the time of a copy.
    """


class DrawnAs(NamedTuple):
    """What determines the weights of a matrix that was drawn by name."""

    seed: int
    name: str
    shape: tuple[int, ...]
    std: float


def drawn_as(weight: Tensor) -> DrawnAs | None:
    """What the weight was drawn as; None unless it was drawn by name and is still as drawn."""
    name, version = getattr(weight, _DRAWN_AS, (None, None))
    return name if weight._version == version else None


def allocate(
    make: Callable[[], M],
    seed: int,
    std: float | Callable[[str, Tensor], float],
    other_stds: Mapping[str, float] | None = None,
) -> M:
    """The model in eval mode: matrices N(0, std), norms one, every other vector zero.

    The seed may be `ByName`. `std` may be a function of a parameter's name and the parameter;
    `other_stds` maps the end of a name to a standard deviation of its own. BatchNorms have seen
    mean 0 and variance 1. The module is laid out without memory first, so that torch's own
    initialisation never runs and the global random state is left alone.
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
                of_this = _std(name, of_all, other_stds or {})
                if isinstance(seed, ByName):
                    _fill(parameter, DrawnAs(int(seed), name, tuple(parameter.shape), of_this))
                else:
                    parameter.normal_(0.0, of_this, generator=generator)
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


def _fill(parameter: nn.Parameter, drawn: DrawnAs) -> None:
    """Copy the weights from the list of normal numbers, beginning again where it ends."""
    numbers, flat = _numbers(drawn.seed), parameter.view(-1)
    digest = hashlib.sha256(f"{drawn.name} {drawn.shape}".encode()).digest()
    start, done = int.from_bytes(digest[:8], "little") % _N_NUMBERS, 0
    while done < len(flat):
        n = min(len(flat) - done, _N_NUMBERS - start)
        torch.mul(numbers[start : start + n], drawn.std, out=flat[done : done + n])
        start, done = 0, done + n
    setattr(parameter, _DRAWN_AS, (drawn, parameter._version))


@lru_cache(maxsize=1)
def _numbers(seed: int) -> Tensor:
    return torch.empty(_N_NUMBERS).normal_(generator=torch.Generator().manual_seed(seed))


def _laid_out(make: Callable[[], M]) -> M:
    with torch.device("meta"):
        model = make()
    model.to_empty(device="cpu")
    return model


def _std(name: str, std: float, other_stds: Mapping[str, float]) -> float:
    return next((value for end, value in other_stds.items() if name.endswith(end)), std)
