"""Proxies of attention heads: section 3.6 of "Training-free NAS for RNNs and transformers".

A term is one head. Where the number of heads is not stated, it follows from the block's S: every
tap of that kind has one row per head, sequence and token.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lpzero.proxies.base import Needs, Terms
from lpzero.proxies.network import Network
from lpzero.proxies.registry import proxy

_PAPER = "Serianni and Kalita 2023"


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
