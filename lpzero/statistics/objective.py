"""The differentiated loss: cross-entropy of next tokens or labels, a random cotangent, or ones.

Labels of images are drawn with a fixed seed. A cotangent c turns the final hidden state y (B, T, h)
into the loss sum(y * c) / (B T); the division makes it a mean over tokens, like the cross-entropy.
Ones is what public code computes for encoders: after a final LayerNorm its gradient is zero except
for rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from lpzero.statistics.errors import StatisticsError
from lpzero.statistics.losses import LOSSES
from spaces.images import random_labels

Objective = Callable[[Tensor, Tensor, slice], Tensor]


def objective(model: nn.Module, loss: str, tokens: Tensor, seed: int) -> Objective:
    """A function from (hidden, tokens, slice of the batch) to that slice's part of the loss.

    Parts add up to the loss of the whole batch, however it is sliced.
    """
    if loss not in LOSSES:
        raise StatisticsError(f"loss {loss!r} is unknown; use one of {', '.join(LOSSES)}")
    token_losses = getattr(model, "token_losses", None)
    if loss == "next-token" and token_losses is None:
        raise StatisticsError(f"{type(model).__name__} predicts no tokens; use loss cotangent")
    logits = getattr(model, "logits", None)
    if loss == "labels" and logits is None:
        raise StatisticsError(f"{type(model).__name__} has no classes; use loss cotangent")
    B = len(tokens)

    def next_token(hidden: Tensor, part: Tensor, _: slice) -> Tensor:
        assert token_losses is not None
        losses: Tensor = token_losses(hidden, part)
        return losses.sum() / (B * (part.shape[1] - 1))

    def labels(hidden: Tensor, _: Tensor, where: slice) -> Tensor:
        assert logits is not None
        scores: Tensor = logits(hidden)
        drawn = random_labels(B, scores.shape[1], seed)[where].to(scores.device)
        return functional.cross_entropy(scores, drawn, reduction="sum") / B

    def cotangent(hidden: Tensor, _: Tensor, where: slice) -> Tensor:
        direction = _cotangent((B, *hidden.shape[1:]), seed).to(hidden)
        return (hidden * direction[where]).sum() / (B * hidden.shape[1])

    def ones(hidden: Tensor, _: Tensor, __: slice) -> Tensor:
        return hidden.sum() / (B * hidden.shape[1])

    known = {"next-token": next_token, "labels": labels, "cotangent": cotangent, "ones": ones}
    return known[_default(token_losses) if loss == "auto" else loss]


def _default(token_losses: object) -> str:
    return "cotangent" if token_losses is None else "next-token"


@lru_cache(maxsize=8)
def _cotangent(shape: tuple[int, ...], seed: int) -> Tensor:
    """Standard normal numbers from NumPy's Philox, the same on every platform."""
    # The second number separates this stream from the one that draws the batch.
    generator = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, 1])))
    return torch.from_numpy(generator.standard_normal(shape, dtype=np.float32))
