"""Spectra of covariances over tokens: W-PCA (Wang 2025), AZ-NAS (Lee and Ham 2024), hidden states.

An FFN's hidden layer before its activation is H = X W + b, a row for each token of each input
(equation 2 of W-PCA). Its score is the number of principal components of H that together have 99%
of its variance (equation 6); V-PCA adds them up over the layers (equation 7), W-PCA multiplies by
the parameters (equation 8). An FFN of several stacked layers, as in FlexiBERT, has several.

AZ-NAS: the authors read features after each attention and each MLP of a ViT; here they are the
outputs of the blocks, which every network has. Complexity is `flops`. The four are combined by the
logarithms of their ranks; the authors' code for ViTs leaves out progressivity, which is
`az-nas-vit`.

Hidden states (section 3.5 of "Training-free NAS for RNNs and transformers"): a layer's hidden state
is what it gives to the next layer and, in a recurrent network, to its own next step. The paper
defines hidden covariance for recurrent networks; here it is computed for the outputs of any blocks,
on the space's wide batch (50 x 70 for the recurrent spaces, as released).
"""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from torch import Tensor

from lpzero.proxies.base import Needs, Terms
from lpzero.proxies.combined import Combined
from lpzero.proxies.families.activations import K
from lpzero.proxies.network import Network, incoming
from lpzero.proxies.passes import LayerRows, block_jacobians, hidden_layers
from lpzero.proxies.registry import get, proxy, register

_W_PCA = "Wang 2025 (W-PCA)"
MANY_INPUTS = 16  # so that tokens outnumber the features of most layers
SHARE = 0.99  # of the variance
_ALIKE = 1e-3  # how far a matrix's outputs may be from the span of its inputs
_AZ_NAS = "Lee and Ham 2024 (AZ-NAS)"
_RATIO_GUARD = 1e-6  # as in the authors' code


@proxy(needs=Needs.FORWARD, paper=_W_PCA, reads="S", n_inputs=MANY_INPUTS)
def v_pca(network: Network) -> Terms:
    """sum over the FFN's hidden layers, before activation, of the principal components over tokens
    that have 99% of the variance"""
    return [
        [float(count_components(spectrum(layer))) for layer in block]
        for block in hidden_layers(network)
    ]


register(Combined("w-pca", (get("v-pca"), get("parameters")), "product", paper=_W_PCA), __name__)


def count_components(values: Tensor) -> int:
    """How many of the eigenvalues (n,), ascending, it takes to have the share of their sum."""
    so_far = values.flip(0).clamp(min=0).cumsum(0)
    return int((so_far < SHARE * so_far[-1]).sum()) + 1


def spectrum(layer: LayerRows) -> Tensor:
    """The eigenvalues, ascending, of the covariance of a layer's outputs, up to a factor.

    Outputs that are an affine function of fewer inputs have no more components than these: their
    coordinates in the span of the inputs have the same spectrum, and are fewer.
    """
    x, y = (rows - rows.mean(0) for rows in layer)
    if x.shape[1] < min(y.shape):
        basis, _ = torch.linalg.qr(x)  # (n, d)
        within = basis.T @ y
        if (y - basis @ within).norm() <= _ALIKE * y.norm():
            y = within
    gram = y @ y.T if y.shape[0] <= y.shape[1] else y.T @ y
    values: Tensor = torch.linalg.eigvalsh(gram)
    return values


@proxy(needs=Needs.FORWARD, paper=_AZ_NAS, n_inputs=MANY_INPUTS)
def az_expressivity(network: Network) -> Terms:
    """sum over blocks of the entropy of p, p the eigenvalues of the covariance of the block's
    outputs over tokens, divided by their sum"""
    return [[found] for found in network.entropies[1:]]


@proxy(needs=Needs.FORWARD, paper=_AZ_NAS, n_inputs=MANY_INPUTS)
def az_progressivity(network: Network) -> float:
    """the least gain of that entropy in a block, from its input to its output"""
    return min(after - before for before, after in pairwise(network.entropies))


@proxy(needs=Needs.FORWARD | Needs.GRADIENT, paper=_AZ_NAS, n_inputs=MANY_INPUTS)
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
register(Combined("az-nas", _FOUR, "rank-log", paper=_AZ_NAS), __name__)
register(Combined("az-nas-vit", tuple(_PARTS.values()), "rank-log", paper=_AZ_NAS), __name__)


_PAPER = "Serianni and Kalita 2023"
_LOSS = Needs.FORWARD | Needs.GRADIENT | Needs.LABELS


@proxy(needs=Needs.FORWARD, paper=_PAPER)
def hidden_covariance(network: Network) -> Terms:
    """sum over layers of -sum log(v + k) + 1 / (v + k), v the eigenvalues of the correlations of
    the layer's units over tokens, k = 1e-5"""
    return [[unit_spectrum(states)] for states in network.wide_outputs]


@proxy(needs=Needs.FORWARD, paper=_PAPER)
def hidden_covariance_1(network: Network) -> float:
    """hidden-covariance of the first layer"""
    return _of_layer(network, 0)


@proxy(needs=Needs.FORWARD, paper=_PAPER)
def hidden_covariance_2(network: Network) -> float:
    """hidden-covariance of the second layer, or of the last where there are fewer"""
    return _of_layer(network, 1)


@proxy(needs=Needs.FORWARD, paper=_PAPER)
def hidden_covariance_3(network: Network) -> float:
    """hidden-covariance of the third layer, or of the last where there are fewer"""
    return _of_layer(network, 2)


@proxy(needs=_LOSS, paper=_PAPER)
def hidden_saliency(network: Network) -> Terms:
    """sum |h * dL/dh| over the hidden states h that a step begins with, of all layers"""
    return [
        [float((of.values * of.gradients).abs().sum(dtype=torch.float64))] for of in network.hidden
    ]


def unit_spectrum(outputs: Tensor) -> float:
    """The Kullback-Leibler score of the correlations between the units of outputs (B, T, d).

    Rows are units, columns the incoming states of all tokens. With fewer columns than units the
    eigenvalues are those of the smaller Gram matrix, and zeros.
    """
    units = incoming(outputs).flatten(0, 1).T.double()  # (d, B T)
    centred = units - units.mean(1, keepdim=True)
    rows = torch.nn.functional.normalize(centred, dim=1, eps=1e-300)
    d, n = rows.shape
    gram = rows @ rows.T if d <= n else rows.T @ rows
    values = torch.linalg.eigvalsh(gram).clamp(min=0) + K
    zeros = torch.full((d - len(values),), K, dtype=values.dtype, device=values.device)
    spectrum = torch.cat([zeros, values])
    return -float((spectrum.log() + 1 / spectrum).sum())


def _of_layer(network: Network, layer: int) -> float:
    outputs = network.wide_outputs
    return unit_spectrum(outputs[min(layer, len(outputs) - 1)])
