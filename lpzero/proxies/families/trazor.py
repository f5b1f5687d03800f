"""Proxies of absolute weights and an input of ones: Synflow, DSS and its parts (T-Razor)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from lpzero.proxies.base import Needs, Terms
from lpzero.proxies.combined import Combined
from lpzero.proxies.families.pruning import nuclear_norm
from lpzero.proxies.network import Network, flat
from lpzero.proxies.registry import get, proxy, register
from lpzero.statistics.trace import Part
from spaces.initialisation import DrawnAs, drawn_as

_FLOW = Needs.FORWARD | Needs.GRADIENT
_TRAZOR = "Zhou et al. 2022, 2024 (T-Razor)"
_Term = Callable[[Tensor, Tensor, float], float]
_NEGLIGIBLE = 1e-3
# Of weights drawn by name, in this process: a search meets the same ones in most of its networks.
_NORMS: dict[DrawnAs, float] = {}


@proxy(needs=_FLOW, paper="Tanaka et al. 2020")
def synflow(network: Network) -> Terms:
    """sum dR/d|W| * |W| over the matrices of the blocks, R the sum of outputs for ones"""
    return _flows(network, None, _share)


@proxy(needs=_FLOW, paper="Cavagnero et al. 2023")
def logsynflow(network: Network) -> Terms:
    """sum |W| * log(1 + |dR/d|W||) over the matrices of the blocks"""
    return _flows(network, None, _log_share)


@proxy(needs=_FLOW, paper=_TRAZOR)
def dss_saliency(network: Network) -> Terms:
    """sum dR/d|W| : |W| over the MLP's matrices"""
    return _flows(network, "feed-forward", _share)


@proxy(needs=_FLOW, paper=_TRAZOR, reads="S")
def dss_diversity(network: Network) -> Terms:
    """sum ||dR/d|W| ||_nuc * || |W| ||_nuc over the attention's matrices"""
    found = []
    for block, flow in zip(network.matrices, network.flowed, strict=True):
        pairs = list(zip(block, flow.gradients, strict=True))
        gradients = [gradient for matrix, gradient in pairs if matrix.part == "attention"]
        norms = [_absolute_norm(matrix.weight) for matrix in block if matrix.part == "attention"]
        products = quick_products if network.is_quick else _products
        found.append([flow.factor * product for product in products(norms, gradients)])
    return found


def _products(norms: Sequence[float], gradients: Sequence[Tensor]) -> list[float]:
    return [norm * nuclear_norm(gradient) for norm, gradient in zip(norms, gradients, strict=True)]


def quick_products(norms: Sequence[float], gradients: Sequence[Tensor]) -> list[float]:
    """The norms times the nuclear norms of the gradients; those that cannot matter approximately.

    With the Frobenius norm f of a matrix of rank r, its nuclear norm is between f and f sqrt(r).
    Where this leaves a product uncertain by a thousandth of the larger ones before it, f is taken:
    queries and keys, whose gradients attention that is saturated makes tiny.
    """
    least = [n * float(g.norm()) for n, g in zip(norms, gradients, strict=True)]
    most = [low * math.sqrt(min(g.shape)) for low, g in zip(least, gradients, strict=True)]
    products, total = list(least), 0.0
    for index in sorted(range(len(norms)), key=lambda i: -most[i]):
        if not most[index] - least[index] <= _NEGLIGIBLE * total:
            products[index] = norms[index] * nuclear_norm(gradients[index])
        total += products[index]
    return products


def _absolute_norm(weight: nn.Parameter) -> float:
    """|| |W| ||_nuc, looked up if it is known of the same weights in another network."""
    drawn = drawn_as(weight)
    if drawn is None:
        return nuclear_norm(flat(weight).abs())
    if drawn not in _NORMS:
        _NORMS[drawn] = nuclear_norm(flat(weight).abs())
    return _NORMS[drawn]


def _flows(network: Network, part: Part | None, term: _Term) -> Terms:
    """The sum of `term` over one part's matrices, or over all."""
    return [
        [
            term(flat(matrix.weight).abs(), gradient, flow.factor)
            for matrix, gradient in zip(block, flow.gradients, strict=True)
            if part in (None, matrix.part)
        ]
        for block, flow in zip(network.matrices, network.flowed, strict=True)
    ]


def _share(weight: Tensor, gradient: Tensor, factor: float) -> float:
    return factor * float((weight * gradient).sum(dtype=torch.float64))


def _log_share(weight: Tensor, gradient: Tensor, factor: float) -> float:
    return float((weight * (factor * gradient.double()).abs().log1p()).sum())


_PARTS = get("dss-diversity"), get("dss-saliency")
register(Combined("dss", _PARTS, "sum", paper=_TRAZOR), __name__)
register(Combined("dss++", _PARTS, "rank-sum", paper=_TRAZOR), __name__)
