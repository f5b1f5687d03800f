"""One pass over absolute weights with any input, loss and initialisation, and what it says.

LayerNorms are kept and every weight is absolute, as in the public code of T-Razor's predecessor
(`lpzero.proxies.flow`); matrices are those of the blocks, attention (MSA) or MLP.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional, init

from lpzero.proxies.families.pruning import nuclear_norm
from lpzero.proxies.network import Network, flat
from lpzero.statistics.isolation import open_attention
from spaces.base import Space
from spaces.images import noise_images

STD = 0.02
LABEL = 1  # of every input, as the paper has it
SIZE = 224


def _uniform(weight: Tensor, generator: torch.Generator) -> None:
    init.uniform_(weight, -STD * math.sqrt(3), STD * math.sqrt(3), generator=generator)


def _normal(weight: Tensor, generator: torch.Generator) -> None:
    init.normal_(weight, 0.0, STD, generator=generator)


Initialise = Callable[..., Any]
# Applied to every weight matrix; normal and uniform have the same deviation.
INITIALISATIONS: dict[str, Initialise] = {
    "normal": _normal,
    "uniform": _uniform,
    "xavier-normal": init.xavier_normal_,
    "xavier-uniform": init.xavier_uniform_,
    "kaiming-normal": init.kaiming_normal_,
    "kaiming-uniform": init.kaiming_uniform_,
}
_SHAPE = (1, 3, SIZE, SIZE)
# There are no photographs here: noise of about their spectrum stands for them.
INPUTS: dict[str, Callable[[], Tensor]] = {
    "ones": lambda: torch.ones(_SHAPE),
    "photograph-like noise": lambda: noise_images(_SHAPE, 0),
    "Gaussian noise": lambda: torch.randn(_SHAPE, generator=torch.Generator().manual_seed(0)),
    "uniform noise": lambda: torch.rand(_SHAPE, generator=torch.Generator().manual_seed(0)),
}
LOSSES: dict[str, Callable[[Tensor], Tensor]] = {
    "sum of logits": lambda logits: logits.sum(),
    "cross-entropy": lambda logits: functional.cross_entropy(logits, torch.tensor([LABEL])),
    "squared error": lambda logits: ((logits - 1) ** 2).mean(),
    "absolute error": lambda logits: (logits - 1).abs().mean(),
}


def build(space: Space[Any], arch: Any, initialisation: str | None = None) -> nn.Module:
    """The network with the space's weights of seed 0, or with its matrices drawn otherwise."""
    model: nn.Module = space.build(arch, 0)
    if initialisation is not None:
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.ndim >= 2:
                    INITIALISATIONS[initialisation](parameter, generator=generator)
    return model


def measure(model: nn.Module, image: str = "ones", loss: str = "sum of logits") -> dict[str, float]:
    """The sums over matrices: saliency and nuclear norms of each part.

    diversity: nuclear norms of gradient and weight, multiplied; saliency: sum |dR/dW * W|.
    """
    absolute: Any = copy.deepcopy(model).double().eval()
    with torch.no_grad():
        for tensor in (*absolute.parameters(), *absolute.buffers()):
            if tensor.is_floating_point():
                tensor.abs_()
    absolute.requires_grad_(True)
    images = INPUTS[image]()
    network = Network(absolute, images)
    with open_attention(absolute), torch.enable_grad():
        total = LOSSES[loss](absolute.logits(absolute(images.double())))
        gradients = torch.autograd.grad(total, network.weights, materialize_grads=True)
    found = dict.fromkeys(
        ("msa_diversity", "msa_saliency", "mlp_saliency", "msa_weight", "msa_gradient"), 0.0
    )
    matrices = [matrix for block in network.matrices for matrix in block]
    for matrix, gradient in zip(matrices, gradients, strict=True):
        weight, slope = flat(matrix.weight), gradient.flatten(1)
        saliency = float((weight * slope).abs().sum())
        if matrix.part == "feed-forward":
            found["mlp_saliency"] += saliency
        elif matrix.part == "attention":
            norms = nuclear_norm(weight), nuclear_norm(slope)
            found["msa_saliency"] += saliency
            found["msa_weight"] += norms[0]
            found["msa_gradient"] += norms[1]
            found["msa_diversity"] += norms[0] * norms[1]
    return found


def pruned_change(model: nn.Module, part: str, share: float, images: Tensor) -> float:
    """How far the logits move when the smallest weights of each matrix of a part become zero.

    The distance from the untouched network's logits over their length.
    """
    whole: Any = model
    pruned: Any = copy.deepcopy(model)
    for block in Network(pruned, images).matrices:
        for matrix in block:
            if matrix.part == part:
                weight = matrix.weight.detach()
                n_pruned = int(share * weight.numel())
                smallest = weight.abs().flatten().argsort()[:n_pruned]
                weight.view(-1)[smallest] = 0.0
    with torch.no_grad():
        before, after = whole.logits(whole(images)), pruned.logits(pruned(images))
    return float((after - before).norm() / before.norm())
