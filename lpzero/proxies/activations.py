"""Proxies from activations and outputs: forward passes only."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from lpzero.proxies.base import Needs, Terms
from lpzero.proxies.jacobian import correlations
from lpzero.proxies.network import Network
from lpzero.proxies.registry import proxy

_CHANNELS = 8  # of each layer, in MeCo's cheaper form
_STEPS = 8  # points on the closed curve
_CURVE = 4  # the random stream of the curve


@proxy(needs=Needs.FORWARD | Needs.TAPS, paper="Mellor et al. 2021")
def activation_distance(network: Network) -> float:
    """log |K|, K_ij the activations that are positive or not in inputs i and j alike (NASWOT)"""
    kernel, _ = _agreement(network)
    return _log_determinant(kernel)


@proxy(needs=Needs.FORWARD | Needs.TAPS, paper="Mellor et al. 2021")
def activation_distance_normalised(network: Network) -> float:
    """log |K| with K divided by the number of activations"""
    kernel, n_units = _agreement(network)
    return _log_determinant(kernel / n_units)


@proxy(needs=Needs.FORWARD | Needs.TAPS, paper="Chen et al. 2021 (TE-NAS)")
def linear_regions(network: Network) -> Terms:
    """sum over blocks of the number of distinct patterns of positive activations among tokens"""
    terms = []
    for block in _activations(network):
        positive = torch.cat([a.flatten(0, 1) > 0 for a in block], dim=1).cpu().numpy()
        terms.append([float(len(np.unique(np.packbits(positive, axis=1), axis=0)))])
    return terms


def _activations(network: Network) -> list[list[Tensor]]:
    if not all(network.passed.A):
        raise network.missing("A")
    return network.passed.A


def _agreement(network: Network) -> tuple[Tensor, int]:
    """K (B, B) over all blocks, and the number of activations of an input."""
    B = len(network.tokens)
    kernel, n_units = torch.zeros(B, B, dtype=torch.float64), 0
    for block in _activations(network):
        for a in block:
            # (1 + s s') / 2 is 1 where signs agree; float32 counts exactly to 2^24
            signs = torch.where(a > 0, 1.0, -1.0).flatten(1)
            kernel += ((signs @ signs.T).double().cpu() + signs.shape[1]) / 2
            n_units += signs.shape[1]
    return kernel, n_units


def _log_determinant(kernel: Tensor) -> float:
    return float(torch.linalg.slogdet(kernel).logabsdet)


@proxy(needs=Needs.FORWARD, paper="Jiang et al. 2023")
def meco(network: Network) -> Terms:
    """sum over blocks of the least eigenvalue of the correlations of 8 channels, times d / 8

    MeCo with a fixed number of channels, evenly spaced among the block's d outputs: of all d the
    least eigenvalue is 0 as soon as d exceeds the tokens.
    """
    terms = []
    for output in network.passed.outputs:
        channels = output.flatten(0, 1).T.double()  # (d, B T)
        d = len(channels)
        picked = channels[np.linspace(0, d - 1, min(_CHANNELS, d)).round().astype(int)]
        least = float(torch.linalg.eigvalsh(correlations(picked))[0])
        terms.append([max(least, 0.0) * d / len(picked)])
    return terms


@proxy(needs=Needs.FORWARD, paper="Chen et al. 2022 (As-ViT)")
def length_distortion(network: Network) -> float:
    """the length of the last block's outputs along a circle of inputs, over the circle's own"""
    T, d = network.passed.inputs[0].shape[1:]
    plane, _ = np.linalg.qr(network.draw(_CURVE).standard_normal((T * d, 2)))
    angles = 2 * math.pi * np.arange(_STEPS) / _STEPS
    points = math.sqrt(T * d) * np.stack([np.cos(angles), np.sin(angles)], 1) @ plane.T
    curve = torch.from_numpy(points).to(network.passed.inputs[0]).view(_STEPS, 1, T, d)
    with network.untouched(), torch.no_grad():
        outputs = [network.trace(slice(0, 1), point).outputs[-1] for point in curve]
    return _length(torch.cat(outputs)) / _length(curve.flatten(0, 1))


def _length(points: Tensor) -> float:
    """The length of the closed polygon through the points (steps, ...)."""
    around = points.flatten(1).double()
    return float((around - around.roll(1, 0)).norm(dim=1).sum())
