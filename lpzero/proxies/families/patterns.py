"""Patterns of positive activations: TE-NAS (Chen et al. 2021) and SWAP (Peng et al. 2024).

TE-NAS adds up the ranks of the number of linear regions, the patterns of tokens, and of the
condition of the tangent kernel.

A unit's pattern says for which inputs of the batch it is positive; SWAP counts the distinct
patterns of all units. A unit is an FFN's activation at a token, as in the authors' code for
transformers, which takes the sign of what GELU gives: the sign of what enters it, since GELU(x) has
the sign of x. With B inputs there are at most 2^B patterns, so SWAP runs on many.

The regularised score multiplies by exp(-(P - mu)^2 / sigma), P the parameters, with mu and sigma
set by hand for each search space to steer the size of what a search finds. Here mu is the mean and
sigma twice the variance of P over the space, from architectures drawn with a fixed seed.
"""

from __future__ import annotations

import math
import random
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from lpzero.proxies.base import Needs, SizeProxy
from lpzero.proxies.combined import Combined
from lpzero.proxies.network import Network
from lpzero.proxies.passes import positive_activations
from lpzero.proxies.registry import get, proxy, register
from spaces.base import Space

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
