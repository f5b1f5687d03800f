"""The loss of a model that is not of our spaces, where none is given.

In this order: the model's own, if it returns one (as models of Hugging Face do for a batch with
labels); the cross-entropy of next tokens, if it returns word logits and is causal; a random
cotangent. A model is causal if its logits before the last token do not change when that token is
exchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from lpzero.errors import InputError
from lpzero.statistics.inputs import Inputs, NamedInputs, call, main_tensor
from lpzero.statistics.isolation import untouched
from lpzero.statistics.layout import first_tensor
from lpzero.statistics.objective import Loss

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
        one = inputs[slice(0, 1)]
        output = call(model, one)
        if _own(output) is not None:
            return own_loss
        return next_token if _is_causal(model, one, first_tensor(output)) else "cotangent"


def next_token(output: Any, batch: Any) -> Tensor:
    """The mean cross-entropy of each sequence's next tokens (n,), from word logits (n, T, V).

    Tokens that an attention mask hides are not predicted.
    """
    logits, tokens = first_tensor(output), _tokens(batch)
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
    found = _own(output)
    if found is None:
        raise InputError("the model returns no loss; give the batch labels, or a loss")
    return found


def _own(output: Any) -> Tensor | None:
    found = output.get("loss") if isinstance(output, Mapping) else None
    return found if isinstance(found, Tensor) and found.ndim == 0 else None


def _tokens(batch: Any) -> Tensor:
    found = batch if isinstance(batch, Tensor) else next(iter(batch.values()))
    if found.is_floating_point() or found.ndim != 2:
        raise InputError("the loss next-token needs token ids (B, T)")
    return found


def _is_causal(model: nn.Module, one: Inputs, logits: Tensor) -> bool:
    tokens = main_tensor(one)
    if tokens.is_floating_point() or tokens.ndim != 2 or tokens.shape[1] < 2 or logits.ndim != 3:
        return False
    words = {m.num_embeddings for m in model.modules() if isinstance(m, nn.Embedding)}
    if logits.shape[:2] != tokens.shape or logits.shape[2] not in words:
        return False
    last = _last_seen(one)
    other = tokens.clone()
    other[:, last] = (tokens[:, last] + 1) % logits.shape[2]
    change = (first_tensor(call(model, _exchanged(one, other))) - logits).abs().amax((0, 2))
    return last > 0 and bool(change[last] > 0) and bool(change[:last].max() <= _SAME * change[last])


def _last_seen(one: Inputs) -> int:
    """The place of the last token that no attention mask hides."""
    mask = one.tensors.get("attention_mask") if isinstance(one, NamedInputs) else None
    if mask is None or mask.ndim != 2 or not mask.any():
        return main_tensor(one).shape[1] - 1
    return int(mask[0].nonzero()[-1])


def _exchanged(one: Inputs, tokens: Tensor) -> Inputs:
    if isinstance(one, NamedInputs):
        return NamedInputs({**one.tensors, next(iter(one.tensors)): tokens})
    return tokens
