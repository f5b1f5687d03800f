"""The settings of a one-shot training: PreNAS's schedule, with steps and rate of nano scale."""

from __future__ import annotations

from dataclasses import dataclass

from lpzero.options import OneOf, Real, Whole, check, option
from lpzero.supernet.samplers import SAMPLERS


@dataclass(frozen=True, slots=True)
class SupernetSettings:
    """How a supernet is trained; every field is an option."""

    sampler: str = option(
        "balanced",
        "Which architecture a step trains: uniform or balanced over the preferred ones, resampled"
        " from their choices, or redundant (any of the space)",
        OneOf("sampler", tuple(SAMPLERS)),
    )
    steps: int = option(3000, "The number of training steps", Whole(1))
    batch: int = option(64, "The number of images or windows in a step", Whole(1))
    sandwich: int = option(
        0,
        "Train the largest, the smallest and this many drawn architectures in every step (BigNAS);"
        " 0 trains one drawn architecture",
        Whole(0),
    )
    learning_rate: float = option(4e-3, "The learning rate of AdamW after warm-up", Real(0))
    final_rate: float = option(2e-5, "The learning rate at the end of the cosine", Real(0))
    warmup: float = option(0.05, "The share of the steps in which the rate rises", Real(0, 1))
    weight_decay: float = option(0.05, "The weight decay of AdamW", Real(0))
    smoothing: float = option(0.1, "The label smoothing of classes", Real(0, 1))
    drop_path: float = option(0.1, "The stochastic depth of the last block", Real(0, 1))
    clip: float = option(1.0, "The largest norm of a step's gradient", Real(0))
    every: int = option(
        250, "Steps between checkpoints, at which preferred networks are measured", Whole(1)
    )
    images: int = option(1500, "The number of held-out inputs that measure a network", Whole(2))
    seed: int = option(0, "The seed of weights, batches and architectures", Whole(0))

    def __post_init__(self) -> None:
        check(self)
