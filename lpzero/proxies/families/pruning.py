"""Products of weights and gradients, from pruning: SNIP, GraSP, Fisher, gradient norms, EZNAS.

Table 1 of LPZero lists them. Matrices are those of the blocks. Synaptic saliency is taken over the
MLP's matrices, attention saliency and diversity over the attention's, as in their papers. Synflow
and T-Razor's DSS with its parts are of absolute weights and an input of ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from lpzero.proxies import flow
from lpzero.proxies.base import Needs, Terms
from lpzero.proxies.combined import Combined
from lpzero.proxies.network import Network, WeightMatrix, flat
from lpzero.proxies.registry import get, proxy, register
from lpzero.statistics.trace import Part
from spaces.initialisation import DrawnAs, drawn_as

_LOSS = Needs.FORWARD | Needs.GRADIENT | Needs.LABELS


@proxy(needs=_LOSS, paper="Lee et al. 2019", normalised=True)
def snip(network: Network) -> Terms:
    """sum |dL/dW * W| over the matrices of the blocks"""
    return _products(network, None)


@proxy(needs=_LOSS, paper="Tanaka et al. 2020; Zhou et al. 2022", normalised=True)
def synaptic_saliency(network: Network) -> Terms:
    """sum |dL/dW * W| over the MLP's matrices"""
    return _products(network, "feed-forward")


@proxy(needs=_LOSS, paper="Serianni and Kalita 2023", normalised=True, reads="S")
def attention_saliency(network: Network) -> Terms:
    """sum |dL/dW * W| over the attention's matrices

    What public code computes under the name of head importance; `head-importance` is the formula
    as it is printed.
    """
    return _products(network, "attention")


def _products(network: Network, part: Part | None) -> Terms:
    """sum |dL/dW * W| of one part's matrices, or of all."""
    return [
        [
            float((flat(matrix.weight) * gradient).abs().sum(dtype=torch.float64))
            for matrix, gradient in zip(block, gradients, strict=True)
            if part in (None, matrix.part)
        ]
        for block, gradients in zip(network.matrices, network.passed.gradients, strict=True)
    ]


@proxy(needs=_LOSS, paper="Abdelfattah et al. 2021", normalised=True)
def grad_norm(network: Network) -> Terms:
    """sum ||dL/dW||_F over the matrices of the blocks"""
    return [[float(g.double().norm()) for g in block] for block in network.passed.gradients]


@proxy(needs=_LOSS, paper="Zhou et al. 2022", normalised=True, reads="S")
def synaptic_diversity(network: Network) -> Terms:
    """sum ||dL/dW||_nuc * ||W||_nuc over the attention's matrices"""
    return diversity(network, network.passed.gradients)


def diversity(network: Network, gradients: list[list[Tensor]]) -> Terms:
    """Products of nuclear norms over the attention's matrices."""
    return [
        [
            nuclear_norm(gradient) * nuclear_norm(flat(matrix.weight))
            for matrix, gradient in zip(block, of_block, strict=True)
            if matrix.part == "attention"
        ]
        for block, of_block in zip(network.matrices, gradients, strict=True)
    ]


def nuclear_norm(matrix: Tensor) -> float:
    """The sum of singular values, as roots of the eigenvalues of the smaller Gram matrix.

    In float64 this is several times faster than an SVD and equal to six digits: only singular
    values below 1e-8 of the largest are lost.
    """
    wide = matrix.double()
    wide = wide if wide.shape[0] <= wide.shape[1] else wide.T
    scale = float(wide.abs().max())
    if scale == 0 or not math.isfinite(scale):
        return scale
    wide = wide / scale  # squares of tiny gradients must not underflow
    values = torch.linalg.eigvalsh(wide @ wide.T)
    noise = values[-1] * torch.finfo(torch.float64).eps * len(values)
    return scale * float(torch.where(values > noise, values, 0.0).sqrt().sum())


@proxy(needs=_LOSS | Needs.SECOND_ORDER, paper="Wang et al. 2020")
def grasp(network: Network) -> Terms:
    """-sum (H dL/dW) * W over the matrices of the blocks, H the Hessian of the loss"""
    return hessian_products(network, lambda *_: nullcontext())


def hessian_products(
    network: Network, during: Callable[[slice, int], AbstractContextManager[None]]
) -> Terms:
    """The terms of GraSP; every pass over a part of the batch runs inside `during(part, run)`.

    The first run is for the gradient, the second for the Hessian.
    """
    network.check_memory(4, "the gradients and their products with the Hessian")
    n_seqs = len(network.tokens)
    weights = network.weights
    # Fused attention has no second derivative.
    with network.untouched(), sdpa_kernel(SDPBackend.MATH):
        parts = [slice(i, min(i + network.chunk, n_seqs)) for i in range(0, n_seqs, network.chunk)]
        # The product is bilinear in the parts of the loss: the gradient of the whole comes first.
        whole = [torch.zeros_like(weight) for weight in weights]
        for part in parts:
            with during(part, 0):
                found = _gradient(network, part, False)
            whole = [t + g for t, g in zip(whole, found, strict=True)]
        total = [torch.zeros_like(weight) for weight in weights]
        for part in parts:
            with during(part, 1):
                gradient = _gradient(network, part, True)
            zero = torch.zeros((), device=network.device)
            inner = sum(((g * w).sum() for g, w in zip(gradient, whole, strict=True)), start=zero)
            products = torch.autograd.grad(inner, weights, materialize_grads=True)
            total = [t + p for t, p in zip(total, products, strict=True)]
    terms = iter(
        -float((product * weight.detach()).sum(dtype=torch.float64))
        for product, weight in zip(total, weights, strict=True)
    )
    return [[next(terms) for _ in block] for block in network.matrices]


def _gradient(network: Network, part: slice, create_graph: bool) -> tuple[Tensor, ...]:
    loss = network.part_loss(network.trace(part).output, part)
    return torch.autograd.grad(
        loss, network.weights, create_graph=create_graph, materialize_grads=True
    )


@proxy(needs=_LOSS | Needs.TAPS, paper="Turner et al. 2020", normalised=True)
def fisher(network: Network) -> Terms:
    """sum over activations of the mean over inputs of (sum over tokens of A * dL/dA)^2 / 2

    dL/dA is the gradient of the input's own loss. One term for each activation layer.
    """
    passed = network.passed
    if not any(passed.A):
        raise network.missing("A")
    B = len(network.tokens)
    return [
        [
            float((B * (a * g).sum(1, dtype=torch.float64)).square().mean(0).sum() / 2)
            for a, g in zip(block, gradients, strict=True)
        ]
        for block, gradients in zip(passed.A, passed.A_gradients, strict=True)
    ]


@proxy(needs=_LOSS, paper="Akhauri et al. 2022")
def eznas(network: Network) -> Terms:
    """sum of sigmoid(log |det sign(dL/dW)|) over the matrices of the blocks

    The program EZNAS found: sign, slogdet, sigmoid, Frobenius norm. A matrix that is not square has
    the root of the determinant of its smaller Gram matrix. The sigmoid is 1 to machine precision
    for all but tiny or singular matrices, so this nearly counts matrices.
    """
    return [
        [_sigmoid(_log_volume(gradient.sign())) for gradient in block]
        for block in network.passed.gradients
    ]


def _log_volume(matrix: Tensor) -> float:
    wide = matrix.double()
    wide = wide if wide.shape[0] <= wide.shape[1] else wide.T
    if wide.shape[0] == wide.shape[1]:
        return float(torch.linalg.slogdet(wide).logabsdet)
    return float(torch.linalg.slogdet(wide @ wide.T).logabsdet) / 2


def _sigmoid(x: float) -> float:
    return 0.5 * (1 + math.tanh(x / 2))


_FLOW = Needs.FORWARD | Needs.GRADIENT
_TRAZOR = "Zhou et al. 2022, 2024 (T-Razor)"
_Term = Callable[[Tensor, Tensor, flow.Scaled], flow.Scaled]
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
    products = quick_products if network.is_quick else _norm_products

    def read(matrices: Sequence[WeightMatrix], found: flow.BlockFlow) -> list[flow.Scaled]:
        pairs = [
            (_absolute_norm(matrix.weight), gradient)
            for matrix, gradient in zip(matrices, found.gradients, strict=True)
            if matrix.part == "attention"
        ]
        norms, gradients = [norm for norm, _ in pairs], [gradient for _, gradient in pairs]
        return [found.factor.times(product) for product in products(norms, gradients)]

    return flow.in_range(flow.read_blocks(network, read))


def _norm_products(norms: Sequence[float], gradients: Sequence[Tensor]) -> list[float]:
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

    def read(matrices: Sequence[WeightMatrix], found: flow.BlockFlow) -> list[flow.Scaled]:
        return [
            term(flat(matrix.weight).abs(), gradient, found.factor)
            for matrix, gradient in zip(matrices, found.gradients, strict=True)
            if part in (None, matrix.part)
        ]

    return flow.in_range(flow.read_blocks(network, read))


def _share(weight: Tensor, gradient: Tensor, factor: flow.Scaled) -> flow.Scaled:
    return factor.times(float((weight * gradient).sum(dtype=torch.float64)))


def _log_share(weight: Tensor, gradient: Tensor, factor: flow.Scaled) -> flow.Scaled:
    slopes = gradient.double().abs()
    if factor.exponent <= flow.TOP // 2:
        logs = (slopes * factor.to_float()).log1p()
    else:  # the product may exceed any float, its logarithm does not
        logs = (slopes.log() + factor.log()).logaddexp(torch.zeros_like(slopes))
    return flow.Scaled(float((weight * logs).sum()))


_PARTS = get("dss-diversity"), get("dss-saliency")
register(Combined("dss", _PARTS, "sum", paper=_TRAZOR), __name__)
register(Combined("dss++", _PARTS, "rank-sum", paper=_TRAZOR), __name__)
