"""Proxies as the authors' public code computes them, where it differs from their papers or ours.

Each is called as ours with `-released` and runs on the recipe's own batch
(`measurements.released_batch`) unless another one is chosen. Models run with dropout
(`passes.train_mode_dropout`), as the released code leaves them in train mode.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from functools import partial

import torch
from torch import Tensor, nn

from lpzero.proxies.base import Needs, Terms
from lpzero.proxies.combined import Combined
from lpzero.proxies.families.pruning import hessian_products, nuclear_norm
from lpzero.proxies.flow import FlowedMatrix
from lpzero.proxies.network import Network
from lpzero.proxies.passes import train_mode_dropout
from lpzero.proxies.registry import get, proxy, register
from lpzero.statistics.objective import next_token
from lpzero.statistics.trace import by_token
from spaces.taps import Tap

_FLOW = Needs.FORWARD | Needs.GRADIENT
_LOSS = _FLOW | Needs.LABELS
_TAPS = Needs.FORWARD | Needs.TAPS
_LPZERO = "code of LPZero"
_SERIANNI = "Serianni and Kalita 2023"
_CONVOLVED = "tap_c"  # the projection of a convolution, which the released code does not read


@proxy(needs=_LOSS | Needs.SECOND_ORDER, paper=_LPZERO, has_own_batch=True, version=3)
def grasp_released(network: Network) -> Terms:
    """-sum (H g) * W over the matrices of the blocks, g and H of two passes with dropout"""

    def during(part: slice, run: int) -> AbstractContextManager[None]:
        return train_mode_dropout(network.model, network.seed, part, run)

    return hessian_products(network, during)


@proxy(needs=_FLOW, paper=_LPZERO, has_own_batch=True, version=3)
def synflow_released(network: Network) -> Terms:
    """sum |W * dR/dW|, all state absolute, norms kept, R the sum of the head cluster's logits"""
    return [
        [float((matrix.weight * matrix.gradient).abs().sum()) for matrix in block]
        for block in network.released.blocks
    ]


@proxy(needs=_FLOW, paper=_LPZERO, has_own_batch=True, version=3)
def logsynflow_released(network: Network) -> Terms:
    """sum |W| * |log |dR/dW|| of the pass of synflow-released; 0 where there is no gradient"""
    return [[_log_flow(matrix) for matrix in block] for block in network.released.blocks]


def _log_flow(matrix: FlowedMatrix) -> float:
    size = matrix.gradient.abs()
    logs = torch.where(size > 0, size, 1.0).log().abs()
    return float((matrix.weight * logs).sum())


@proxy(needs=_FLOW, paper="code of Zhou et al. 2022", has_own_batch=True, version=2)
def dss_diversity_released(network: Network) -> float:
    """sum ||dR/dW||_nuc * ||W||_nuc over fused q, k and v and every other square Linear"""
    attention, _ = _dss_parts(network)
    return math.fsum(nuclear_norm(m.gradient) * nuclear_norm(m.weight) for m in attention)


@proxy(needs=_FLOW, paper="code of Zhou et al. 2022", has_own_batch=True, version=2)
def dss_saliency_released(network: Network) -> float:
    """sum |dR/dW * W| over all other Linears, pooling and head included"""
    _, others = _dss_parts(network)
    return math.fsum(float((m.weight * m.gradient).abs().sum()) for m in others)


def _dss_parts(network: Network) -> tuple[list[FlowedMatrix], list[FlowedMatrix]]:
    """Fused q, k, v and the square Linears; all other Linears of the model."""
    by_module: dict[str, dict[str, FlowedMatrix]] = {}
    for matrix in network.released.linears:
        place, _, last = matrix.name.removesuffix(".weight").rpartition(".")
        by_module.setdefault(place, {})[last] = matrix
    attention: list[FlowedMatrix] = []
    others: list[FlowedMatrix] = []
    for place, found in by_module.items():
        if {"query", "key", "value"} <= set(found):
            parts = [found.pop(name) for name in ("query", "key", "value")]
            weight = torch.cat([part.weight for part in parts])
            gradient = torch.cat([part.gradient for part in parts])
            attention.append(FlowedMatrix(f"{place}.qkv", weight, gradient))
        for last, matrix in found.items():
            is_square = matrix.weight.shape[0] == matrix.weight.shape[1]
            (attention if last == "qkv" or is_square else others).append(matrix)
    return attention, others


_PARTS = get("dss-diversity-released"), get("dss-saliency-released")
register(Combined("dss-released", _PARTS, "sum", paper="code of Zhou et al. 2022"), __name__)
register(Combined("dss++-released", _PARTS, "rank-sum", paper="code of Zhou et al. 2022"), __name__)


@proxy(needs=Needs.FORWARD, paper=_LPZERO, has_own_batch=True, version=3)
def activation_distance_released(network: Network) -> Terms:
    """sum of all entries of x x' + (1 - x)(1 - x)', x the positive outputs of the first input

    Of every block matrix (decoders), else of every FFN activation. x is (tokens, outputs), so that
    a unit that is positive for p of T tokens adds p^2 + (T - p)^2.
    """
    first = slice(0, 1)
    found = None if _is_decoder(network) else _tapped(network, first, "A")
    if not found or not any(found):  # a cell without activations that can be read
        found = list(_outputs(network, first, _matrix_modules(network)))
    return [[_agreements(output[0]) for output in block] for block in found]


def _agreements(output: Tensor) -> float:
    """For each pair of tokens (T, outputs) how many signs agree, added up."""
    positive = (output > 0).sum(0, dtype=torch.float64)  # (outputs,)
    return float((positive**2 + (len(output) - positive) ** 2).sum())


def _is_decoder(network: Network) -> bool:
    return hasattr(network.model, "token_losses") or network.loss is next_token


@proxy(
    needs=Needs.FORWARD | Needs.TAPS,
    paper=_SERIANNI,
    normalised=True,
    has_own_batch=True,
    version=3,
    reads="S",
)
def attention_confidence_released(network: Network) -> Terms:
    """sum of the mean of the maximum over tokens: of every block matrix's output (decoders), else H

    H: the projections of queries, keys and values, of the linear transforms and of WMA's weight.
    """
    return _module_maxima(network) if _is_decoder(network) else head_confidence_released(network)


@proxy(
    needs=Needs.FORWARD | Needs.TAPS,
    paper=_SERIANNI,
    normalised=True,
    has_own_batch=True,
    version=3,
    reads="S",
)
def head_confidence_released(network: Network) -> Terms:
    """sum over the projections H of the mean of the maximum over tokens"""
    if network.layout.H:
        return _maxima(network, partial(_tapped, network, statistic="H"))
    return _maxima(network, partial(_outputs, network, modules=_projections(network)))


def _module_maxima(network: Network) -> Terms:
    return _maxima(network, partial(_outputs, network, modules=_matrix_modules(network)))


def _maxima(network: Network, outputs: Callable[[slice], Iterable[list[Tensor]]]) -> Terms:
    """For each tensor (b, T, features) of a block the mean of the maximum over tokens."""
    B = len(network.tokens)
    terms: Terms = []
    for start in range(0, B, network.chunk):
        found = [
            [float(output.amax(1).double().mean(1).sum()) / B for output in block]
            for block in outputs(slice(start, min(start + network.chunk, B)))
        ]
        terms = _added(terms, found) if terms else found
    return terms


def _added(first: Terms, second: Terms) -> Terms:
    return [[a + b for a, b in zip(*of, strict=True)] for of in zip(first, second, strict=True)]


def _tapped(network: Network, part: slice, statistic: str) -> list[list[Tensor]]:
    """The tensors (b, T, features) of a statistic where they can be read, block by block."""
    dropout = train_mode_dropout(network.model, network.seed, part)
    with network.untouched(), dropout, torch.no_grad():
        return [block[statistic] for block in network.trace(part, taps=(statistic,)).taps]


@proxy(needs=_LOSS, paper=_LPZERO, has_own_batch=True, version=4)
def eznas_released(network: Network) -> Terms:
    """sum of sigmoid(log det(sign(g) sign(g)')), g the gradients as stored, to float32's precision

    A matrix with more rows than columns has 0, nearly all others 1: the score counts them.
    """
    return [
        [_ez(gradient.sign()) for gradient in block] for block in network.released_pass.gradients
    ]


def _ez(signs: Tensor) -> float:
    n_rows, n_columns = signs.shape
    if n_rows > n_columns:
        return 0.0
    if not signs.isfinite().all():
        return math.nan
    # Rows of signs often depend on each other. The released code's determinant, in float32, is then
    # rounding and not 0, so that the other rows outweigh it; here every machine rounds alike.
    values = torch.linalg.eigvalsh(signs.double() @ signs.double().T)
    smallest = torch.finfo(torch.float32).eps * values[-1]
    return float(torch.sigmoid(values.clamp(min=smallest).log().sum()))


@proxy(needs=_LOSS, paper=_LPZERO, has_own_batch=True, version=4)
def jacobian_cosine_released(network: Network) -> float:
    """1 - mean over pairs of channels of |cos|^(1/20) / 2, of the loss's gradient at the positions

    The gradient at a table of positions that is added to the first block's input: the one at that
    input, added up over the batch.
    """
    return _cosine(network.released_pass.input_gradients[0].sum(0))


def _cosine(J: Tensor) -> float:
    """1 - half the mean of |cos|^(1/20) over pairs of channels of J (T, d)."""
    unit = torch.nn.functional.normalize(J.T.double(), dim=1, eps=1e-300)
    d = len(unit)
    below = (unit @ unit.T).abs().tril(-1)
    return 1.0 - float((below ** (1 / 20)).tril(-1).sum()) / (d * d - d)


def _matrix_modules(network: Network) -> list[list[nn.Module]]:
    """The modules of each block that multiply by one matrix."""
    return [
        [module for module in block.modules() if _is_product(module)] for block in network.blocks
    ]


def _is_product(module: nn.Module) -> bool:
    weight = dict(module.named_parameters(recurse=False)).get("weight")
    return weight is not None and weight.ndim == 2 and not isinstance(module, nn.Embedding)


def _projections(network: Network) -> list[list[nn.Module]]:
    found: list[list[nn.Module]] = [
        [
            module
            for name, module in block.named_modules()
            if isinstance(module, Tap) and module.statistic == "H" and not _is_convolved(name)
        ]
        for block in network.blocks
    ]
    if not any(found):
        raise network.missing("H")
    return found


def _is_convolved(name: str) -> bool:
    return name.rpartition(".")[2] == _CONVOLVED


def _outputs(
    network: Network, part: slice, modules: list[list[nn.Module]]
) -> Iterator[list[Tensor]]:
    """The output (b, T, features) of each module that is called, block by block, of one pass.

    Fused attention of other people's models reads a projection's weight without calling it.
    """
    seen: dict[int, Tensor] = {}

    def keep(module: nn.Module, _: object, output: Tensor) -> None:
        seen[id(module)] = output.detach()

    handles = [module.register_forward_hook(keep) for block in modules for module in block]
    try:
        dropout = train_mode_dropout(network.model, network.seed, part)
        with network.untouched(), dropout, torch.no_grad():
            inputs = network.trace(part).inputs
    finally:
        for handle in handles:
            handle.remove()
    for block, entered in zip(modules, inputs, strict=True):
        found = [seen[id(module)] for module in block if id(module) in seen]
        yield [by_token(output, entered) for output in found]
