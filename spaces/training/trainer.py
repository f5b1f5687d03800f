"""A small trainer: AdamW, warm-up and cosine, deterministic on one thread."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from spaces.base import Space
from spaces.training.tasks import Task

# Raise it whenever a run of the same recipe and seed would give another target.
VERSION = 1
POINTS = 32  # of a curve of losses, at most
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that a run depends on besides the architecture and the seed."""

    steps: int
    learning_rate: float
    windows: int = 16
    warmup: float = 0.1
    weight_decay: float = 0.01
    clip: float = 1.0


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """One finished training run; `failure` says why it has no target, which is NaN then.

    `curve` has the training loss: [steps done, mean loss since the point before].
    """

    seed: int
    target: float
    steps: int
    seconds: float
    curve: list[list[float]]
    failure: str | None = None


class LossCurve:
    """Collects the losses of a training's steps; a point is the mean since the point before it."""

    def __init__(self, steps: int) -> None:
        self.points: list[list[float]] = []  # [steps done, mean loss]
        self._steps = steps
        self._losses: list[float] = []

    def add(self, loss: float) -> None:
        """The loss of the next step."""
        before = len(self._losses) + (int(self.points[-1][0]) if self.points else 0)
        self._losses.append(loss)
        if (before + 1) * POINTS // self._steps > before * POINTS // self._steps:
            mean = sum(self._losses) / len(self._losses)
            self.points.append([before + 1, float(f"{mean:.{_DIGITS}g}")])
            self._losses.clear()


class DivergedError(ArithmeticError):
    """The loss of a training step, `args[0]`, is not finite."""


def train(space: Space[Any], arch: Any, task: Task, recipe: Recipe, seed: int) -> TrainingRun:
    """Train one architecture from one seed and measure it.

    The seed determines the initial weights and the order of the data. One thread, because the
    order of float additions, and with it the target, depends on the number of threads. A training
    whose loss leaves the range of floats ends there and is a failure.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    started = time.perf_counter()
    steps, target, failure = recipe.steps, math.nan, None
    curve = LossCurve(recipe.steps)
    try:
        module = task.prepare(space, arch, seed)
        _descend(module, task, recipe, seed, curve)
        target = task.target(module)
        if not math.isfinite(target):
            failure = "the held-out loss is not finite"
    except DivergedError as diverged:
        steps = diverged.args[0]
        failure = f"the training loss is not finite after {steps} steps"
    finally:
        torch.set_num_threads(threads)
    seconds = time.perf_counter() - started
    return TrainingRun(seed, target, steps, seconds, curve.points, failure)


def _descend(module: nn.Module, task: Task, recipe: Recipe, seed: int, curve: LossCurve) -> None:
    generator = torch.Generator().manual_seed(1_000_003 * (seed + 1))
    optimiser = torch.optim.AdamW(
        _decayed_groups(module, recipe.weight_decay), lr=recipe.learning_rate, betas=(0.9, 0.98)
    )
    for step in range(recipe.steps):
        for group in optimiser.param_groups:
            group["lr"] = recipe.learning_rate * schedule(step, recipe)
        loss = task.loss(module, task.draw(recipe.windows, generator), generator)
        if not torch.isfinite(loss):
            raise DivergedError(step)
        curve.add(float(loss.detach()))
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(module.parameters(), recipe.clip)
        optimiser.step()


def _decayed_groups(module: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    matrices = [p for p in module.parameters() if p.ndim >= 2]
    vectors = [p for p in module.parameters() if p.ndim < 2]
    return [
        {"params": matrices, "weight_decay": weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]


def schedule(step: int, recipe: Recipe) -> float:
    """The factor of the learning rate at a step: linear warm-up, then a cosine to a tenth."""
    n_warmup = max(1, int(recipe.warmup * recipe.steps))
    if step < n_warmup:
        return (step + 1) / n_warmup
    progress = (step - n_warmup) / max(1, recipe.steps - n_warmup)
    return 0.1 + 0.45 * (1 + math.cos(math.pi * progress))
