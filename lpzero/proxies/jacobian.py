"""Proxies of the similarity between the loss's gradients at different inputs.

An input is a sequence as it enters the first block; J_n (T d,) is the gradient of its own loss
there. Mellor et al. use the eigenvalues of the correlations of J, Celotti et al. cosines. The
papers do not state how much noise their noisy variants add; ours is stated with each. The public
code of "Training-free NAS for RNNs and transformers" compares the score s_a of inputs with noise of
amplitude a = 0, 0.1, 10, 100: a times the variance of the inputs over the batch times N(0, 1). The
variants of the covariance, and those of the cosine that are called `released`, are those.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from lpzero.proxies.base import Needs
from lpzero.proxies.input_noise import AMPLITUDES, gradients_at, standard_normal
from lpzero.proxies.network import Network
from lpzero.proxies.registry import proxy

_LOSS = Needs.FORWARD | Needs.GRADIENT | Needs.LABELS
_CELOTTI = "Celotti et al. 2020"
_SERIANNI = "Serianni and Kalita 2023"
K = 1e-5


@proxy(needs=_LOSS, paper="Mellor et al. 2021")
def jacobian_covariance(network: Network) -> float:
    """-sum log(v + k) + 1 / (v + k), v the eigenvalues of the correlations of J, k = 1e-5"""
    J = network.passed.input_gradients[0].flatten(1).double()
    return spectrum_score(correlations(J))


def correlations(rows: Tensor) -> Tensor:
    """Pearson's coefficients of each pair of rows (N, features); 0 with a constant row."""
    centred = rows - rows.mean(1, keepdim=True)
    unit = torch.nn.functional.normalize(centred, dim=1, eps=1e-300)
    return unit @ unit.T


def spectrum_score(kernel: Tensor) -> float:
    """The Kullback-Leibler score of a correlation matrix (N, N)."""
    values = torch.linalg.eigvalsh(kernel).clamp(min=0) + K
    return -float((values.log() + 1 / values).sum())


@proxy(needs=_LOSS, paper=_CELOTTI)
def jacobian_cosine(network: Network) -> float:
    """1 - mean over pairs of inputs of |cos(J_i, J_j)|^(1/20)"""
    return cosine_score(network.passed.input_gradients[0])


@proxy(needs=_LOSS, paper=_CELOTTI)
def jacobian_cosine_large_noise(network: Network) -> float:
    """jacobian-cosine of inputs with Gaussian noise as large as themselves"""
    B = len(network.tokens)
    return cosine_score(_noised(network, torch.ones(B)))


@proxy(needs=_LOSS, paper=_CELOTTI)
def jacobian_cosine_more_noised(network: Network) -> float:
    """jacobian-cosine of inputs with noise that grows from none to as large as the last input"""
    B = len(network.tokens)
    return cosine_score(_noised(network, torch.linspace(0, 1, B)))


@proxy(needs=_LOSS, paper=_SERIANNI)
def jacobian_covariance_large_noise(network: Network) -> float:
    """1 - |s_0 - s_10|, s_a jacobian-covariance with noise of amplitude a"""
    return 1 - abs(_noised_covariance(network, 0) - _noised_covariance(network, 10))


@proxy(needs=_LOSS, paper=_SERIANNI)
def jacobian_covariance_more_noised(network: Network) -> float:
    """s_0 s_0.1 s_10 s_100, s_a jacobian-covariance with noise of amplitude a"""
    return math.prod(_noised_covariance(network, amplitude) for amplitude in AMPLITUDES)


@proxy(needs=_LOSS, paper=_SERIANNI)
def jacobian_cosine_large_noise_released(network: Network) -> float:
    """1 - |s_0 - s_10|, s_a = 1 - half the mean of |cos|^(1/20) with noise of amplitude a"""
    return 1 - abs(_released_cosine(network, 0) - _released_cosine(network, 10))


@proxy(needs=_LOSS, paper=_SERIANNI)
def jacobian_cosine_more_noised_released(network: Network) -> float:
    """s_0 s_0.1 s_10 s_100, s_a = 1 - half the mean of |cos|^(1/20) with noise of amplitude a"""
    return math.prod(_released_cosine(network, amplitude) for amplitude in AMPLITUDES)


def _noised_covariance(network: Network, amplitude: float) -> float:
    J = network.noised[amplitude].flatten(1).double()
    return spectrum_score(correlations(J))


def _released_cosine(network: Network, amplitude: float) -> float:
    # The released code adds up both triangles and halves the sum, but divides by all pairs.
    return 1 - (1 - cosine_score(network.noised[amplitude])) / 2


def cosine_score(J: Tensor) -> float:
    """1 - the mean of |cosine|^(1/20) over the pairs of J (N, ...)."""
    unit = torch.nn.functional.normalize(J.flatten(1).double(), dim=1, eps=1e-300)
    N = len(unit)
    if N < 2:
        return math.nan
    apart = (unit @ unit.T - torch.eye(N, dtype=unit.dtype, device=unit.device)).abs()
    apart.fill_diagonal_(0.0)
    return 1.0 - float((apart ** (1 / 20)).sum() / (N * N - N))


def _noised(network: Network, levels: Tensor) -> Tensor:
    """The gradients at the inputs (B, T, d), each input with noise of `level` times its spread."""
    inputs = network.passed.inputs[0]
    spread = (levels.to(inputs) * inputs.flatten(1).std(1, correction=0))[:, None, None]
    return gradients_at(network, inputs + spread * standard_normal(network, inputs))
