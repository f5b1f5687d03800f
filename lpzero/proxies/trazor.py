"""Proxies of absolute weights and an input of ones: Synflow, DSS and its parts (T-Razor)."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from lpzero.proxies.combined import Combined
from lpzero.proxies.network import Network, flat
from lpzero.proxies.registry import Needs, Terms, get, proxy, register
from lpzero.proxies.saliency import nuclear_norm
from lpzero.statistics.trace import Part
from spaces.initialisation import DrawnAs, drawn_as

_FLOW = Needs.FORWARD | Needs.GRADIENT
_TRAZOR = "Zhou et al. 2022, 2024 (T-Razor)"
_Term = Callable[[Tensor, Tensor], Tensor]
# Of weights drawn by name, in this process: a search meets the same ones in most of its networks.
_NORMS: dict[DrawnAs, float] = {}


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
            nuclear_norm(gradient) * _absolute_norm(matrix.weight)
            for matrix, gradient in zip(block, of_block, strict=True)
            if matrix.part == "attention"
        ]
        for block, of_block in zip(network.matrices, network.flowed, strict=True)
    ]


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
            float(term(flat(matrix.weight).abs().double(), gradient).sum())
            for matrix, gradient in zip(block, gradients, strict=True)
            if part in (None, matrix.part)
        ]
        for block, gradients in zip(network.matrices, network.flowed, strict=True)
    ]


_PARTS = get("dss-diversity"), get("dss-saliency")
register(Combined("dss", _PARTS, "sum", paper=_TRAZOR))
register(Combined("dss++", _PARTS, "rank-sum", paper=_TRAZOR))
