"""Proxies of attention: of its heads, and the formula that Auto-Prox discovered for ViTs.

Section 3.6 of "Training-free NAS for RNNs and transformers": a term is one head. Where the number
of heads is not stated, it follows from the block's S: every tap of that kind has one row per head,
sequence and token.

Auto-Prox (Wei et al. 2024): the authors' repository has its genotype in every configuration, the
same for AutoFormer and PiT: the first input t2 after min-max normalisation and the Frobenius norm,
plus the second, t4g, after sigmoid and square root. What t2 and t4g are is not in it: the package
that computes them was never uploaded. A block of the authors' models has four matrices, of queries,
keys and values, of the attention's projection, and two of the MLP: read here as t1 to t4, and g as
the loss's gradient. So t2 is the matrix after the heads, t4g the gradient of the MLP's last.
LPZero, by the same authors with the same tree, takes the mean of a tensor and the mean over blocks:
that is `auto-prox-normalised`. The sum over blocks counts depth beside.

A normalised matrix has entries near 1/2 and the sigmoid of a small gradient is 1/2: whatever the
two tensors are, a block's value is near sqrt(n) / 2 + sqrt(1/2), n the entries of the first.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lpzero.proxies.base import Needs, Terms
from lpzero.proxies.network import Network, WeightMatrix, flat
from lpzero.proxies.registry import proxy
from lpzero.statistics.layout import Part

_PAPER = "Serianni and Kalita 2023"
_AUTO_PROX = "Wei et al. 2024 (Auto-Prox)"
_RANGE_GUARD = 1e-9  # as in the authors' code


@proxy(needs=Needs.FORWARD | Needs.TAPS, paper=_PAPER, normalised=True, reads="S")
def attention_confidence(network: Network) -> Terms:
    """sum over heads of |max over tokens of the head's output|, mean over features and inputs"""
    return [
        [float(head.amax(1).abs().mean(dtype=torch.float64)) for head in _heads(network, block)]
        for block in range(len(network.blocks))
    ]


@proxy(needs=Needs.FORWARD | Needs.TAPS, paper=_PAPER, normalised=True, reads="S")
def softmax_confidence(network: Network) -> Terms:
    """sum over heads of the largest attention probability, mean over tokens and inputs"""
    terms: Terms = []
    for index, block in enumerate(network.passed.S):
        B, T, _ = network.passed.outputs[index].shape
        n_heads = _n_heads(network, index)
        total = sum(float(S.amax(-1).sum(dtype=torch.float64)) for S in block) / (B * T)
        # Heads of one block differ in kind (attention, kernels), so only their mean is used.
        terms.append([total / n_heads] * n_heads)
    return terms


@proxy(
    needs=Needs.FORWARD | Needs.GRADIENT | Needs.LABELS | Needs.TAPS,
    paper="Michel et al. 2019; " + _PAPER,
    normalised=True,
    version=2,
    reads="S",
)
def head_importance(network: Network) -> Terms:
    """sum over heads and tokens of |Att * dL/dAtt|, Att the head's output"""
    return [
        [
            float((head * gradient).sum(-1, dtype=torch.float64).abs().sum())
            for head, gradient in zip(
                _heads(network, block), _heads(network, block, gradients=True), strict=True
            )
        ]
        for block in range(len(network.blocks))
    ]


def _heads(network: Network, block: int, gradients: bool = False) -> tuple[Tensor, ...]:
    """The output of each head (B, T, width), or the loss's gradient there."""
    passed = network.passed
    found = (passed.head_gradients if gradients else passed.heads)[block]
    if not found:
        raise network.missing("heads")
    return found[0].chunk(_n_heads(network, block), dim=-1)


def _n_heads(network: Network, block: int) -> int:
    B, T, _ = network.passed.outputs[block].shape
    rows = sum(S.numel() // S.shape[-1] for S in network.passed.S[block])
    if rows == 0:
        raise network.missing("S")
    return rows // (B * T)


@proxy(
    needs=Needs.FORWARD | Needs.GRADIENT | Needs.LABELS,
    paper=_AUTO_PROX,
    normalised=True,
    reads="S",
)
def auto_prox(network: Network) -> Terms:
    """sum over blocks of ||minmax(W)||_F + mean sqrt(sigmoid(dL/dV)), W the matrix after the
    heads, V the MLP's last"""
    terms = []
    for block, gradients in zip(network.matrices, network.passed.gradients, strict=True):
        after_heads = _last(block, "attention", network.layout.heads)
        weight = flat(block[after_heads].weight).double()
        slope = gradients[_last(block, "feed-forward")].double()
        terms.append([_norm(weight) + float(torch.sigmoid(slope).sqrt().mean())])
    return terms


def _norm(weight: Tensor) -> float:
    """The Frobenius norm of the matrix moved and scaled to [0, 1]."""
    low, high = weight.min(), weight.max()
    return float(((weight - low) / (high - low + _RANGE_GUARD)).norm())


def _last(block: list[WeightMatrix], part: Part, preferred: tuple[str, ...] = ()) -> int:
    """The place of the part's last matrix, or of the last one below a preferred module."""
    places = [index for index, matrix in enumerate(block) if matrix.part == part]
    named = [i for i in places if any(block[i].name.startswith(f"{one}.") for one in preferred)]
    return (named or places)[-1]
