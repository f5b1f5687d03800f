"""Principal components of feed-forward layers: V-PCA and W-PCA (Wang 2025).

An FFN's hidden layer before its activation is H = X W + b, a row for each token of each input
(equation 2 of W-PCA). Its score is the number of principal components of H that together have 99%
of its variance (equation 6); V-PCA adds them up over the layers (equation 7), W-PCA multiplies by
the parameters (equation 8). An FFN of several stacked layers, as in FlexiBERT, has several.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lpzero.proxies import sizes as sizes  # registers `parameters`
from lpzero.proxies.base import Needs, Terms
from lpzero.proxies.combined import Combined
from lpzero.proxies.forward_pass import Affine, hidden_layers
from lpzero.proxies.network import Network
from lpzero.proxies.registry import get, proxy, register

_PAPER = "Wang 2025 (W-PCA)"
MANY_INPUTS = 16  # so that tokens outnumber the features of most layers
SHARE = 0.99  # of the variance
_ALIKE = 1e-3  # how far a matrix's outputs may be from the span of its inputs


@proxy(needs=Needs.FORWARD, paper=_PAPER, reads="S", n_inputs=MANY_INPUTS)
def v_pca(network: Network) -> Terms:
    """sum over the FFN's hidden layers, before activation, of the principal components over tokens
    that have 99% of the variance"""
    return [
        [float(count_components(spectrum(layer))) for layer in block]
        for block in hidden_layers(network)
    ]


register(Combined("w-pca", (get("v-pca"), get("parameters")), "product", paper=_PAPER))


def count_components(values: Tensor) -> int:
    """How many of the eigenvalues (n,), ascending, it takes to have the share of their sum."""
    so_far = values.flip(0).clamp(min=0).cumsum(0)
    return int((so_far < SHARE * so_far[-1]).sum()) + 1


def spectrum(layer: Affine) -> Tensor:
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
