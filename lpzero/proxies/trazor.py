"""Proxies of absolute weights and an input of ones: Synflow, DSS and its parts (T-Razor)."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from lpzero.proxies.combined import Combined
from lpzero.proxies.network import Network, flat
from lpzero.proxies.registry import Needs, Terms, get, proxy, register
from lpzero.proxies.saliency import nuclear_norm
from lpzero.statistics.trace import Part

_FLOW = Needs.FORWARD | Needs.GRADIENT
_TRAZOR = "Zhou et al. 2022, 2024 (T-Razor)"
_Term = Callable[[Tensor, Tensor], Tensor]


@proxy(needs=_FLOW, paper="Tanaka et al. 2020")
def synflow(network: Network) -> Terms:
    """sum dR/d|W| * |W| over the matrices of the blocks, R the sum of outputs for ones"""
    return _flows(network, None, lambda weight, gradient: weight * gradient)


@proxy(needs=_FLOW, paper="Cavagnero et al. 2023")
def logsynflow(network: Network) -> Terms:
    """sum |W| * log(1 + |dR/d|W||) over the matrices of the blocks"""
    return _flows(network, None, lambda w, gradient: w * gradient.abs().log1p())


@proxy(needs=_FLOW, paper=_TRAZOR)
def dss_saliency(network: Network) -> Terms:
    """sum dR/d|W| : |W| over the MLP's matrices"""
    return _flows(network, "feed-forward", lambda weight, gradient: weight * gradient)


@proxy(needs=_FLOW, paper=_TRAZOR, reads="S")
def dss_diversity(network: Network) -> Terms:
    """sum ||dR/d|W| ||_nuc * || |W| ||_nuc over the attention's matrices"""
    return [
        [
            nuclear_norm(gradient) * nuclear_norm(flat(matrix.weight).abs())
            for matrix, gradient in zip(block, of_block, strict=True)
            if matrix.part == "attention"
        ]
        for block, of_block in zip(network.matrices, network.flowed, strict=True)
    ]


def _flows(network: Network, part: Part | None, term: _Term) -> Terms:
    """The sum of `term` over one part's matrices, or over all."""
    return [
        [
            float(term(flat(matrix.weight).abs().double(), gradient).sum())
            for matrix, gradient in zip(block, gradients, strict=True)
            if part in (None, matrix.part)
        ]
        for block, gradients in zip(network.matrices, network.flowed, strict=True)
    ]


_PARTS = get("dss-diversity"), get("dss-saliency")
register(Combined("dss", _PARTS, "sum", paper=_TRAZOR))
register(Combined("dss++", _PARTS, "rank-sum", paper=_TRAZOR))
