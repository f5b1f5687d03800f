"""The two training tasks, on the bytes of the text that comes with CPython.

A task adds to a space's untrained model whatever it needs for training, computes the loss of a
batch of windows, and measures the target (larger is better) on held-out text.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from spaces.base import Space
from spaces.minibatch import pydoc_text

HELD_OUT_SHARE = 0.1
N_HELD_OUT_WINDOWS = 720


class Task(ABC):
    """What is trained and how it is measured."""

    target_name: str

    def __init__(self, context: int) -> None:
        text = torch.from_numpy(np.frombuffer(pydoc_text(), dtype=np.uint8).astype(np.int64))
        n_train = int(len(text) * (1 - HELD_OUT_SHARE))
        self.context = context
        self.train_text = text[:n_train]
        self.held_out = _windows(text[n_train:], context, N_HELD_OUT_WINDOWS)  # (windows, T)

    def draw(self, n_windows: int, generator: torch.Generator) -> Tensor:
        """Training windows at random places, int64 (B, T)."""
        last = len(self.train_text) - self.context
        starts = torch.randint(0, last, (n_windows, 1), generator=generator)
        return self.train_text[starts + torch.arange(self.context)]

    @abstractmethod
    def prepare(self, space: Space[Any], arch: Any, seed: int) -> nn.Module:
        """The module to train."""

    @abstractmethod
    def loss(self, module: nn.Module, tokens: Tensor, generator: torch.Generator) -> Tensor:
        """The training loss of a batch."""

    @abstractmethod
    def target(self, module: nn.Module) -> float:
        """The trained module's quality on held-out text, larger is better."""


def _windows(text: Tensor, context: int, n_windows: int) -> Tensor:
    starts = torch.linspace(0, len(text) - context, n_windows).long().unsqueeze(1)
    return text[starts + torch.arange(context)]


class CausalLanguageModelling(Task):
    """Next-byte prediction; target: minus the validation loss in nats per byte."""

    target_name = "minus validation loss"

    def prepare(self, space: Space[Any], arch: Any, seed: int) -> nn.Module:
        return space.build(arch, seed)

    def loss(self, module: nn.Module, tokens: Tensor, generator: torch.Generator) -> Tensor:
        losses: Tensor = module.token_losses(module(tokens), tokens)  # type: ignore[operator]
        return losses.mean()

    def target(self, module: nn.Module) -> float:
        with torch.no_grad():
            parts = [self.loss(module, part, torch.Generator()) for part in self.held_out.split(64)]
        return -float(torch.stack(parts).double().mean())


class ReplacedTokenDetection(Task):
    """Telling original bytes from replacements, ELECTRA's discriminator task.

    The generator is not a second network: replacements are drawn with the byte frequencies of the
    training text. They are the same for every architecture, so they add no noise between them.
    Detection alone hardly leaves its plateau within a nano budget (300 steps end at or near
    chance), so the encoder also learns to predict the original byte, as COCO-LM does. The target
    is the held-out balanced accuracy of detection: the mean of the accuracies on original and on
    replaced bytes.
    """

    target_name = "held-out balanced accuracy"
    replaced_share = 0.15
    measurement_seed = 12345

    def __init__(self, context: int) -> None:
        super().__init__(context)
        counts = torch.bincount(self.train_text, minlength=256).double()
        self.cumulative = (counts / counts.sum()).cumsum(0)

    def prepare(self, space: Space[Any], arch: Any, seed: int) -> nn.Module:
        return Discriminator(space.build(arch, seed), space.width(arch))

    def corrupt(self, tokens: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Tokens with some replaced, and where they now differ: (B, T) int64, (B, T) bool."""
        chosen = torch.rand(tokens.shape, generator=generator) < self.replaced_share
        draws = torch.rand(tokens.shape, generator=generator, dtype=torch.float64)
        fakes = torch.searchsorted(self.cumulative, draws).clamp(max=255)
        corrupted = torch.where(chosen, fakes, tokens)
        return corrupted, corrupted != tokens

    def loss(self, module: nn.Module, tokens: Tensor, generator: torch.Generator) -> Tensor:
        corrupted, replaced = self.corrupt(tokens, generator)
        detection, originals = module(corrupted)
        restored = functional.cross_entropy(originals.flatten(0, 1), tokens.flatten())
        detected = functional.binary_cross_entropy_with_logits(detection, replaced.float())
        return restored + detected

    def target(self, module: nn.Module) -> float:
        generator = torch.Generator().manual_seed(self.measurement_seed)
        corrupted, replaced = self.corrupt(self.held_out, generator)
        with torch.no_grad():
            logits = torch.cat([module(part)[0] for part in corrupted.split(64)])
        return balanced_accuracy(logits, replaced)


def balanced_accuracy(logits: Tensor, replaced: Tensor) -> float:
    """The mean accuracy over the two classes when the true number is predicted as replaced.

    The threshold is a rank rather than logit zero, because the classes are far from balanced.
    """
    suspects = logits.flatten().argsort(descending=True, stable=True)[: int(replaced.sum())]
    called = torch.zeros(logits.numel(), dtype=torch.bool)
    called[suspects] = True
    called = called.view_as(replaced)
    hits, passes = called[replaced].double().mean(), (~called[~replaced]).double().mean()
    return float((hits + passes) / 2)


class Discriminator(nn.Module):
    """An encoder with a detection logit and the logits of the original byte per token.

    Both heads start at zero, so the seed affects only the encoder.
    """

    def __init__(self, encoder: nn.Module, width: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.detection = nn.Parameter(torch.zeros(width))
        self.originals = nn.Parameter(torch.zeros(256, width))
        self.originals_bias = nn.Parameter(torch.zeros(256))

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.encoder(tokens)
        logits = functional.linear(hidden, self.originals, self.originals_bias)
        return hidden @ self.detection, logits


TASKS: dict[str, type[Task]] = {
    "causal": CausalLanguageModelling,
    "replaced": ReplacedTokenDetection,
}
