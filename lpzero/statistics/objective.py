"""The differentiated loss: cross-entropy of next tokens or labels, a random cotangent, or ones.

Or a function of the user's: loss(output, batch) gives one number, the mean over the samples of the
batch, or one number per sample (n,), which are averaged.

Labels of images are drawn with a fixed seed. A cotangent c turns the final hidden state y (B, T, h)
into the loss sum(y * c) / (B T); the division makes it a mean over tokens, like the cross-entropy.
Ones is what public code computes for encoders: after a final LayerNorm its gradient is zero except
for rounding.

A model that is not of our spaces has, where none is given, in this order: its own loss, if it
returns one (as models of Hugging Face do for a batch with labels); the cross-entropy of next
tokens, if it returns word logits and is causal; a random cotangent. A model is causal if its logits
before the last token do not change when that token is exchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from lpzero.errors import InputError
from lpzero.statistics import LOSSES, StatisticsError
from lpzero.statistics.inputs import Inputs, NamedInputs, call, given, main_tensor
from lpzero.statistics.isolation import untouched
from lpzero.statistics.layout import first_tensor
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

    losses = {"next-token": next_token, "labels": labels, "cotangent": cotangent, "ones": ones}
    usual = "cotangent" if token_losses is None else "next-token"
    return losses[usual if loss == "auto" else loss]


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


@lru_cache(maxsize=8)
def _cotangent(shape: tuple[int, ...], seed: int) -> Tensor:
    """Standard normal numbers from NumPy's Philox, the same on every platform."""
    # The second number separates this stream from the one that draws the batch.
    generator = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, 1])))
    return torch.from_numpy(generator.standard_normal(shape, dtype=np.float32))


_SAME = 1e-4  # of what the last token changes at its own place


def named_loss(model: nn.Module, loss: str | Loss, inputs: Inputs) -> str | Loss:
    """The loss to differentiate; a name that only models of our spaces know becomes a function."""
    if callable(loss) or hasattr(model, "token_losses"):
        return loss
    if loss == "next-token":
        return next_token
    if loss != "auto":
        return loss
    with untouched(model, [], next(model.parameters()).device), torch.no_grad():
        first = inputs[slice(0, 1)]
        output = call(model, first)
        if _own(output) is not None:
            return own_loss
        return next_token if _is_causal(model, first, first_tensor(output)) else "cotangent"


def next_token(output: Any, batch: Any) -> Tensor:
    """The mean cross-entropy of each sequence's next tokens (n,), from word logits (n, T, V).

    Tokens that an attention mask hides are not predicted.
    """
    logits, tokens = first_tensor(output).float(), _tokens(batch)
    if logits.ndim != 3 or logits.shape[:2] != tokens.shape or int(tokens.max()) >= logits.shape[2]:
        raise InputError(
            f"the model returns {tuple(logits.shape)}, not the logits of the next tokens; give a"
            " loss"
        )
    losses: Tensor = functional.cross_entropy(
        logits[:, :-1].transpose(1, 2), tokens[:, 1:], reduction="none"
    )
    mask = batch.get("attention_mask") if isinstance(batch, Mapping) else None
    if mask is None:
        return losses.mean(1)
    seen: Tensor = mask[:, 1:].to(losses)
    return (losses * seen).sum(1) / seen.sum(1).clamp(min=1)


def own_loss(output: Any, batch: Any) -> Tensor:
    """The loss that the model itself returns, a mean over its batch."""
    loss = _own(output)
    if loss is None:
        raise InputError("the model returns no loss; give the batch labels, or a loss")
    return loss


def _own(output: Any) -> Tensor | None:
    loss = output.get("loss") if isinstance(output, Mapping) else None
    return loss if isinstance(loss, Tensor) and loss.ndim == 0 else None


def _tokens(batch: Any) -> Tensor:
    tokens: Tensor = batch if isinstance(batch, Tensor) else next(iter(batch.values()))
    if tokens.is_floating_point() or tokens.ndim != 2:
        raise InputError("the loss next-token needs token ids (B, T)")
    return tokens


def _is_causal(model: nn.Module, first: Inputs, logits: Tensor) -> bool:
    tokens = main_tensor(first)
    if tokens.is_floating_point() or tokens.ndim != 2 or tokens.shape[1] < 2 or logits.ndim != 3:
        return False
    words = {m.num_embeddings for m in model.modules() if isinstance(m, nn.Embedding)}
    if logits.shape[:2] != tokens.shape or logits.shape[2] not in words:
        return False
    last = _last_seen(first)
    other = tokens.clone()
    other[:, last] = (tokens[:, last] + 1) % logits.shape[2]
    change = (first_tensor(call(model, _exchanged(first, other))) - logits).abs().amax((0, 2))
    return last > 0 and bool(change[last] > 0) and bool(change[:last].max() <= _SAME * change[last])


def _last_seen(first: Inputs) -> int:
    """The place of the last token that no attention mask hides."""
    mask = first.tensors.get("attention_mask") if isinstance(first, NamedInputs) else None
    if mask is None or mask.ndim != 2 or not mask.any():
        return main_tensor(first).shape[1] - 1
    return int(mask[0].nonzero()[-1])


def _exchanged(first: Inputs, tokens: Tensor) -> Inputs:
    if isinstance(first, NamedInputs):
        return NamedInputs({**first.tensors, next(iter(first.tensors)): tokens})
    return tokens
