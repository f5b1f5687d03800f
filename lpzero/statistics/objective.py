"""The differentiated loss: cross-entropy of next tokens or labels, a random cotangent, or ones.

Or a function of the user's: loss(output, batch) gives one number, the mean over the samples of the
batch, or one number per sample (n,), which are averaged.

Labels of images are drawn with a fixed seed. A cotangent c turns the final hidden state y (B, T, h)
into the loss sum(y * c) / (B T); the division makes it a mean over tokens, like the cross-entropy.
Ones is what public code computes for encoders: after a final LayerNorm its gradient is zero except
for rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from lpzero.errors import InputError
from lpzero.statistics.errors import StatisticsError
from lpzero.statistics.inputs import Inputs, given
from lpzero.statistics.layout import first_tensor
from lpzero.statistics.losses import LOSSES
from spaces.images import random_labels

Objective = Callable[[Any, Inputs, slice], Tensor]
# (what the model returns, its batch) -> the mean loss of the samples, or the loss of each (n,)
Loss = Callable[[Any, Any], Tensor]


class LossError(InputError):
    """A loss that does not give one number, or one per sample."""


def objective(model: nn.Module, loss: str | Loss, tokens: Inputs, seed: int) -> Objective:
    """A function from (output, tokens, slice of the batch) to that slice's part of the loss.

    Parts add up to the loss of the whole batch, however it is sliced.
    """
    if callable(loss):
        return _of_function(loss, len(tokens))
    if loss not in LOSSES:
        raise StatisticsError(f"loss {loss!r} is unknown; use one of {', '.join(LOSSES)}")
    token_losses = getattr(model, "token_losses", None)
    if loss == "next-token" and token_losses is None:
        raise StatisticsError(f"{type(model).__name__} predicts no tokens; use loss cotangent")
    logits = getattr(model, "logits", None)
    B = len(tokens)

    def next_token(hidden: Tensor, part: Inputs, _: slice) -> Tensor:
        assert token_losses is not None
        assert isinstance(part, Tensor)
        losses: Tensor = token_losses(hidden, part)
        return losses.sum() / (B * (part.shape[1] - 1))

    def labels(output: Any, _: Inputs, where: slice) -> Tensor:
        scores: Tensor = first_tensor(output) if logits is None else logits(output)
        if scores.ndim != 2:
            raise StatisticsError(f"{type(model).__name__} has no classes; use loss cotangent")
        drawn = random_labels(B, scores.shape[1], seed)[where].to(scores.device)
        return functional.cross_entropy(scores, drawn, reduction="sum") / B

    def cotangent(output: Any, _: Inputs, where: slice) -> Tensor:
        hidden = first_tensor(output)
        direction = _cotangent((B, *hidden.shape[1:]), seed).to(hidden)
        return (hidden * direction[where]).sum() / (B * _n_tokens(hidden))

    def ones(output: Any, _: Inputs, __: slice) -> Tensor:
        hidden = first_tensor(output)
        return hidden.sum() / (B * _n_tokens(hidden))

    known = {"next-token": next_token, "labels": labels, "cotangent": cotangent, "ones": ones}
    return known[_default(token_losses) if loss == "auto" else loss]


def _of_function(loss: Loss, B: int) -> Objective:
    def of_function(output: Any, part: Inputs, where: slice) -> Tensor:
        n = where.stop - where.start
        losses = loss(output, given(part))
        shape = tuple(losses.shape) if isinstance(losses, Tensor) else type(losses).__name__
        if shape not in ((), (n,)):
            raise LossError(f"the loss gave {shape}, expected one number or one per sample, ({n},)")
        return losses.sum() / B if losses.ndim else losses * (n / B)

    return of_function


def _n_tokens(hidden: Tensor) -> int:
    """The tokens of an output (B, T, d); 1 of an output (B, d)."""
    return hidden.shape[1] if hidden.ndim > 2 else 1


def _default(token_losses: object) -> str:
    return "cotangent" if token_losses is None else "next-token"


@lru_cache(maxsize=8)
def _cotangent(shape: tuple[int, ...], seed: int) -> Tensor:
    """Standard normal numbers from NumPy's Philox, the same on every platform."""
    # The second number separates this stream from the one that draws the batch.
    generator = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, 1])))
    return torch.from_numpy(generator.standard_normal(shape, dtype=np.float32))
