"""The layout and the loss of a model of Hugging Face's transformers."""

from __future__ import annotations

from typing import Any

from torch import nn

from lpzero.hf.batches import batch as default_batch
from lpzero.statistics.inputs import read_inputs
from lpzero.statistics.layout import Layout
from lpzero.statistics.layout_finder import find_layout
from lpzero.statistics.objective import Loss, named_loss


def layout(model: nn.Module, batch: Any = None) -> Layout:
    """Blocks, heads, activations, attention probabilities, embedding and head of the model.

    The model runs once on one input of the batch, or of a random one, with eager attention where a
    fused kernel would hide the probabilities; its own implementation is set again afterwards.
    """
    return find_layout(model, default_batch(model) if batch is None else batch)


def loss(model: nn.Module, batch: Any = None) -> str | Loss:
    """What `lpzero.score` differentiates by default: see `lpzero.statistics.objective`."""
    given = default_batch(model) if batch is None else batch
    return named_loss(model, "auto", read_inputs(given, model))
