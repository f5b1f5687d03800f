"""AZ-NAS: expressivity, progressivity, trainability and complexity (Lee and Ham 2024).

The authors read features after each attention and each MLP of a ViT; here they are the outputs of
the blocks, which every network has. Complexity is `flops`. The four are combined by the logarithms
of their ranks; the authors' code for ViTs leaves out progressivity, which is `az-nas-vit`.
"""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from torch import Tensor

from lpzero.proxies import sizes as sizes  # registers `flops`
from lpzero.proxies.base import Needs, Terms
from lpzero.proxies.combined import Combined
from lpzero.proxies.components import MANY_INPUTS
from lpzero.proxies.forward_pass import block_jacobians
from lpzero.proxies.network import Network
from lpzero.proxies.registry import get, proxy, register

_PAPER = "Lee and Ham 2024 (AZ-NAS)"
_RATIO_GUARD = 1e-6  # as in the authors' code


@proxy(needs=Needs.FORWARD, paper=_PAPER, n_inputs=MANY_INPUTS)
def az_expressivity(network: Network) -> Terms:
    """sum over blocks of the entropy of p, p the eigenvalues of the covariance of the block's
    outputs over tokens, divided by their sum"""
    return [[found] for found in network.entropies[1:]]


@proxy(needs=Needs.FORWARD, paper=_PAPER, n_inputs=MANY_INPUTS)
def az_progressivity(network: Network) -> float:
    """the least gain of that entropy in a block, from its input to its output"""
    return min(after - before for before, after in pairwise(network.entropies))


@proxy(needs=Needs.FORWARD | Needs.GRADIENT, paper=_PAPER, n_inputs=MANY_INPUTS)
def az_trainability(network: Network) -> float:
    """mean over blocks of 2 - s - 1/s, s the largest singular value of the mean over tokens of
    (J' g) g', g random signs at the block's output, J its Jacobian; blocks that pool left out"""
    found = [matrix for matrix in block_jacobians(network) if matrix is not None]
    largest = [_largest_singular_value(matrix) for matrix in found]
    return math.fsum(2 - s - 1 / (s + _RATIO_GUARD) for s in largest) / len(largest)


def _largest_singular_value(matrix: Tensor) -> float:
    gram = matrix @ matrix.T if matrix.shape[0] <= matrix.shape[1] else matrix.T @ matrix
    return math.sqrt(max(float(torch.linalg.eigvalsh(gram)[-1]), 0.0))


_PARTS = {name: get(name) for name in ("az-expressivity", "az-trainability", "flops")}
_FOUR = (*_PARTS.values(), get("az-progressivity"))
register(Combined("az-nas", _FOUR, "rank-log", paper=_PAPER))
register(Combined("az-nas-vit", tuple(_PARTS.values()), "rank-log", paper=_PAPER))
