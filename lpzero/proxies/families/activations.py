"""Proxies from activations, outputs, and the loss's gradients at the inputs.

For gradients an input is a sequence as it enters the first block; J_n (T d,) is the gradient of its
own loss there. Mellor et al. use the eigenvalues of the correlations of J, Celotti et al. cosines.
The papers do not state how much noise their noisy variants add; ours is stated with each. The
public code of "Training-free NAS for RNNs and transformers" compares the score s_a of inputs with
noise of amplitude a = 0, 0.1, 10, 100: a times the variance of the inputs over the batch times N(0,
1). The variants of the covariance, and those of the cosine that are called `released`, are those.
All else needs forward passes only.

Patterns of positive activations: TE-NAS (Chen et al. 2021) adds up the ranks of the number of
linear regions, the patterns of tokens, and of the condition of the tangent kernel. A unit's pattern
says for which inputs of the batch it is positive; SWAP (Peng et al. 2024) counts the distinct
patterns of all units. A unit is an FFN's activation at a token, as in the authors' code for
transformers, which takes the sign of what GELU gives: the sign of what enters it, since GELU(x) has
the sign of x. With B inputs there are at most 2^B patterns, so SWAP runs on many. The regularised
score multiplies by exp(-(P - mu)^2 / sigma), P the parameters, with mu and sigma set by hand for
each search space to steer the size of what a search finds. Here mu is the mean and sigma twice the
variance of P over the space, from architectures drawn with a fixed seed.
"""

from __future__ import annotations

import math
import random
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lpzero.proxies.base import Needs, SizeProxy, Terms
from lpzero.proxies.combined import Combined
from lpzero.proxies.network import Network
from lpzero.proxies.passes import AMPLITUDES, gradients_at, positive_activations, standard_normal
from lpzero.proxies.registry import get, proxy, register
from spaces.base import Space

_LOSS = Needs.FORWARD | Needs.GRADIENT | Needs.LABELS
_CELOTTI = "Celotti et al. 2020"
_SERIANNI = "Serianni and Kalita 2023"
K = 1e-5
_CHANNELS = 8  # of each layer, in MeCo's cheaper form
_STEPS = 8  # points on the closed curve
_CURVE = 4  # the random stream of the curve


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


_PAPER = "Peng et al. 2024 (SWAP)"
_MANY_INPUTS = 32  # four thousand million patterns
_DRAWN = 1000  # architectures whose sizes are those of the space
_WORD = 8  # bytes

WordArray = npt.NDArray[np.uint64]  # bits of patterns, 64 to a word


_TE_NAS = get("ntk-condition"), get("linear-regions")
register(Combined("te-score", _TE_NAS, "rank-sum", paper="Chen et al. 2021 (TE-NAS)"), __name__)


@proxy(needs=Needs.FORWARD | Needs.TAPS, paper=_PAPER, n_inputs=_MANY_INPUTS)
def swap(network: Network) -> float:
    """the number of distinct patterns of inputs for which an activation is positive"""
    found = [distinct(block) for block in positive_activations(network)]
    return float(len(_unique(np.concatenate(found))))


def distinct(positive: Tensor) -> WordArray:
    """The distinct columns of a matrix (B, n) of bits, as rows of words (patterns, words)."""
    bits = np.packbits(positive.cpu().numpy(), axis=0).T  # (n, bytes)
    missing = -bits.shape[1] % _WORD
    padded = np.pad(bits, ((0, 0), (0, missing)))
    return _unique(np.ascontiguousarray(padded).view(np.uint64))


def _unique(words: WordArray) -> WordArray:
    # One word to a row sorts as numbers, ten times as fast as rows do.
    return np.unique(words)[:, None] if words.shape[1] == 1 else np.unique(words, axis=0)


def size_factor(space: Space[Any], arch: Any) -> float:
    """exp(-(P - mu)^2 / sigma) of the architecture's parameters P."""
    mean, variance = _sizes(space)
    return math.exp(-((space.parameters(arch) - mean) ** 2) / (2 * variance))


@lru_cache(maxsize=8)
def _sizes(space: Space[Any]) -> tuple[float, float]:
    """The mean and variance of the parameters over the space."""
    rng = random.Random(0)
    found = [space.parameters(space.sample(rng)) for _ in range(_DRAWN)]
    return float(np.mean(found)), float(np.var(found))


_FACTOR = SizeProxy(
    "exp(-(P - mu)^2 / sigma) of the parameters P",
    size_factor,
    _PAPER,
    only_spaces="it compares a size with those of a search space, and a model has none",
)
register(Combined("swap-regularised", (get("swap"), _FACTOR), "product", paper=_PAPER), __name__)
