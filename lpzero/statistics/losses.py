"""What is differentiated: next-token cross-entropy, a random cotangent, or ones.

A cotangent c turns the final hidden state y (B, T, h) into the loss sum(y * c) / (B T); the
division makes it a mean over tokens, like the cross-entropy. Ones is what public code computes
for encoders: after a final LayerNorm its gradient is zero but for rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor, nn

from lpzero.sketch import LOSSES
from lpzero.statistics.surroundings import StatisticsError

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
    B, T = tokens.shape

    def next_token(hidden: Tensor, part: Tensor, _: slice) -> Tensor:
        assert token_losses is not None
        losses: Tensor = token_losses(hidden, part)
        return losses.sum() / (B * (T - 1))

    def cotangent(hidden: Tensor, _: Tensor, where: slice) -> Tensor:
        direction = _cotangent((B, T, hidden.shape[-1]), seed).to(hidden)
        return (hidden * direction[where]).sum() / (B * T)

    def ones(hidden: Tensor, _: Tensor, __: slice) -> Tensor:
        return hidden.sum() / (B * T)

    auto = cotangent if token_losses is None else next_token
    return {"auto": auto, "next-token": next_token, "cotangent": cotangent, "ones": ones}[loss]


@lru_cache(maxsize=8)
def _cotangent(shape: tuple[int, ...], seed: int) -> Tensor:
    """Standard normal numbers from NumPy's Philox, the same on every platform."""
    # The second word keeps the stream apart from the one that draws the batch.
    generator = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, 1])))
    return torch.from_numpy(generator.standard_normal(shape, dtype=np.float32))
