"""One-shot training of a supernet: one drawn architecture (or a sandwich) in every step.

A step depends on the weights, the optimiser's moments and the step's number alone: batch,
architecture and dropped branches are drawn from (seed, step). So a training that continues from a
checkpoint gives the weights of one that was never interrupted, bit for bit. It runs on one thread.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from lpzero.errors import InputError, LPZeroError
from lpzero.supernet.one_shot import SupernetSettings
from lpzero.supernet.selection import sampler_named
from spaces.base import Space
from spaces.supernet import State, Supernet
from spaces.training.shared_tasks import MeanWithError, SharedTask

_MOMENTS = ("exp_avg", "exp_avg_sq", "step")
_N_NORM_BATCHES = 8  # batches on which BatchNorms are recomputed
_NORM_STEP = 1 << 40  # the first number of their batches, beyond any step


class DivergedError(LPZeroError, ArithmeticError):
    """The loss of a training step is not finite."""


class Trainer:
    """A supernet in training; `n_done` steps are done."""

    def __init__(
        self,
        space: Space[Any],
        task: SharedTask,
        settings: SupernetSettings,
        preferred: Sequence[Any],
    ) -> None:
        self.space, self.task, self.settings = space, task, settings
        self.supernet: Supernet[Any] = space.supernet(settings.seed)
        self.sample = sampler_named(settings.sampler, space, preferred)
        self.names = {id(p): name for name, p in self.supernet.largest.named_parameters()}
        self.optimizer = torch.optim.AdamW(
            self.supernet.largest.parameters(),
            lr=settings.learning_rate,
            weight_decay=settings.weight_decay,
            foreach=False,
        )
        self.n_done = 0

    def step(self) -> float:
        """Train one step and return its loss; single-threaded contexts are the caller's."""
        settings, number = self.settings, self.n_done
        rng = random.Random(f"{settings.seed}/{number}")
        batch = self.task.batch(settings.seed, number, settings.batch)
        generator = torch.Generator().manual_seed(rng.getrandbits(62))
        self.optimizer.zero_grad(set_to_none=True)
        total = 0.0
        for arch in self._architectures(rng):

            def loss_of(model: Any) -> Tensor:
                with ExitStack() as stack:
                    self._drop_paths(model, generator, stack)
                    return self.task.losses(model, batch, settings.smoothing).mean()

            loss = self.supernet.call(arch, loss_of, is_training=True)
            loss.backward()
            total += float(loss.detach())
        if not math.isfinite(total):
            raise DivergedError(f"the loss of step {number} is {total}: lower --learning-rate")
        nn.utils.clip_grad_norm_(self.supernet.largest.parameters(), settings.clip, foreach=False)
        for group in self.optimizer.param_groups:
            group["lr"] = rate(settings, number)
        self.optimizer.step()
        self.n_done += 1
        return total

    def _architectures(self, rng: random.Random) -> list[Any]:
        if not self.settings.sandwich:
            return [self.sample(rng)]
        sharing = self.supernet.sharing
        drawn = [self.sample(rng) for _ in range(self.settings.sandwich)]
        return [sharing.largest(), *drawn, sharing.smallest()]

    def _drop_paths(self, model: Any, generator: torch.Generator, stack: ExitStack) -> None:
        """Stochastic depth: hooks that drop branches of single inputs, more in later blocks."""
        last = max(len(model.blocks) - 1, 1)
        for index, block in enumerate(model.blocks):
            share = self.settings.drop_path * index / last
            for branch in self.supernet.sharing.branches(block) if share else ():
                handle = branch.register_forward_hook(partial(_dropped, share, generator))
                stack.callback(handle.remove)

    def norm_state(self, arch: Any) -> State:
        """The statistics of the architecture's BatchNorms on training batches, if it has any."""
        return norm_state(self.supernet, self.task, arch, self.settings)

    def state(self) -> dict[str, Tensor]:
        """Weights and moments by name: what a checkpoint holds."""
        tensors = {f"weights.{n}": p.detach() for n, p in self.supernet.largest.named_parameters()}
        for parameter, moments in self.optimizer.state.items():
            for moment in _MOMENTS:
                value = moments[moment].detach().float().reshape(moments[moment].shape)
                tensors[f"{moment}.{self.names[id(parameter)]}"] = value
        return tensors

    def restore(self, state: Mapping[str, Tensor], n_done: int) -> None:
        """Continue from a checkpoint's state."""
        parameters = dict(self.supernet.largest.named_parameters())
        for name, parameter in parameters.items():
            stored = state.get(f"weights.{name}")
            if stored is None or stored.shape != parameter.shape:
                raise InputError(f"the checkpoint does not have {name} of shape {parameter.shape}")
            with torch.no_grad():
                parameter.copy_(stored)
            if f"step.{name}" in state:
                moments = {moment: state[f"{moment}.{name}"].clone() for moment in _MOMENTS}
                self.optimizer.state[parameter] = moments
        self.n_done = n_done


def norm_state(
    supernet: Supernet[Any], task: SharedTask, arch: Any, settings: SupernetSettings
) -> State:
    """The statistics of the architecture's BatchNorms on training batches, if it has any."""
    batches = (
        task.batch(settings.seed, _NORM_STEP + index, settings.batch).inputs
        for index in range(_N_NORM_BATCHES)
    )
    return supernet.recomputed(arch, batches)


def measure(
    supernet: Supernet[Any],
    task: SharedTask,
    arch: Any,
    settings: SupernetSettings,
    part: str = "valid",
) -> MeanWithError:
    """The architecture's measure with inherited weights on held-out data."""
    batch = task.held_out(part, settings.images)
    state = norm_state(supernet, task, arch, settings)
    return supernet.call(arch, lambda model: task.measure(model, batch), state)


def rate(settings: SupernetSettings, step: int) -> float:
    """The learning rate: a linear rise, then a cosine down to the final rate."""
    rising = max(1, round(settings.warmup * settings.steps))
    if step < rising:
        return settings.learning_rate * (step + 1) / rising
    share = (step - rising) / max(1, settings.steps - rising)
    height = settings.learning_rate - settings.final_rate
    return settings.final_rate + height * 0.5 * (1 + math.cos(math.pi * share))


def _dropped(
    share: float, generator: torch.Generator, _: nn.Module, __: Any, output: Tensor
) -> Tensor:
    shape = (len(output),) + (1,) * (output.ndim - 1)
    kept = torch.rand(shape, generator=generator) >= share
    return output * kept / (1 - share)
