"""Gradients of single inputs against each other: tangent kernels, ZiCo, GradSign, KNAS.

The tangent kernel is traced over tokens and outputs by one probe of random signs on the last
block's output (ETAS, equations 2 and 3); the kernel of losses uses each input's own loss. torch is
imported where a network runs, so a score that is cached needs none.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from lpzero.proxies.base import Needs, Terms
from lpzero.proxies.combined import Combined
from lpzero.proxies.registry import get, proxy, register

if TYPE_CHECKING:
    from lpzero.proxies.network import Network

_OUTPUT = Needs.FORWARD | Needs.GRADIENT
_LOSS = _OUTPUT | Needs.LABELS


@proxy(needs=_OUTPUT, paper="ETAS")
def ntkt(network: Network) -> float:
    """sum over inputs, tokens and outputs of ||dz/dW||^2 / T^2, z the last block's output"""
    traced = network.tangent_trace
    return traced.value / traced.n_tokens**2


@proxy(needs=_OUTPUT, paper="Chen et al. 2021 (TE-NAS)", direction=-1)
def ntk_condition(network: Network) -> float:
    """largest over least eigenvalue of the tangent kernel; small is better"""
    import torch

    values = torch.linalg.eigvalsh(network.tangent)
    return float(values[-1] / values[0]) if values[0] > 0 else math.nan


@proxy(needs=_LOSS, paper="Shu et al. 2022")
def ntk_trace(network: Network) -> float:
    """sqrt of the mean over inputs of ||dL_n/dW||^2"""
    return math.sqrt(float(network.sampled.gram.trace()) / len(network.tokens))


@proxy(needs=_LOSS, paper="Xu et al. 2021 (KNAS)")
def mgm(network: Network) -> float:
    """the mean over pairs of inputs of dL_i/dW * dL_j/dW"""
    return float(network.sampled.gram.mean())


@proxy(needs=_LOSS, paper="Zhang and Jia 2022")
def gradsign(network: Network) -> float:
    """sum over weights of |sum over inputs of sign(dL_n/dw)|"""
    return network.sampled.agreement


@proxy(needs=_LOSS, paper="Li et al. 2023")
def zico(network: Network) -> Terms:
    """sum over matrices of log(sum over weights of mean |dL_n/dw| / std dL_n/dw over inputs)"""
    terms = iter(math.log(s) if s > 0 else 0.0 for s in network.sampled.steadiness)
    return [[next(terms) for _ in block] for block in network.matrices]


register(Combined("ntsr", (get("ntkt"), get("sept")), "rank-mean", paper="ETAS"), __name__)
