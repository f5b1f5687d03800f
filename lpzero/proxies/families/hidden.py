"""Proxies of hidden states: section 3.5 of "Training-free NAS for RNNs and transformers".

A layer's hidden state is what it gives to the next layer and, in a recurrent network, to its own
next step. The paper defines hidden covariance for recurrent networks; here it is computed for the
outputs of any blocks, on the space's wide batch (50 x 70 for the recurrent spaces, as released).
"""

from __future__ import annotations

import torch
from torch import Tensor

from lpzero.proxies.base import Needs, Terms
from lpzero.proxies.families.activations import K
from lpzero.proxies.network import Network, incoming
from lpzero.proxies.registry import proxy

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
