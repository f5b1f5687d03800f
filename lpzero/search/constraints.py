"""Bounds on an architecture's cost: parameters, decoder parameters, flops, measured latency.

Bounds that no architecture satisfies are detected before any work: by the counted costs of many
samples, and the latency of a few of those that remain.

The latency of an architecture is the median time of a forward pass on this machine. Unlike the
other costs it depends on the machine and its load. A search therefore records each latency and
never measures an architecture twice, even after resuming.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lpzero.errors import InputError
from lpzero.judgement import counters
from spaces.base import Space

COUNTED = ("parameters", "decoder-parameters", "flops")
LATENCY = "latency"
COSTS = (*COUNTED, LATENCY)
_UNITS = {LATENCY: " ms"}
_PROBES, _TIMED_PROBES = 10_000, 20
WARM_UP, RUNS = 3, 11
_MILLI = 1000.0

Bound = tuple[float | None, float | None]
Clock = Callable[[Any], float]


@dataclass(frozen=True)
class Constraints:
    """The minimum and maximum of each cost; None means no bound."""

    bounds: Mapping[str, Bound] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for cost, (least, most) in self.bounds.items():
            if cost not in COSTS:
                raise InputError(f"{cost!r} cannot be bounded; use one of {', '.join(COSTS)}")
            for bound in (least, most):
                if bound is not None and not (math.isfinite(bound) and bound >= 0):
                    raise InputError(f"a bound of {cost} is {bound}, expected a number from 0")
            if least is not None and most is not None and least > most:
                raise InputError(
                    f"at least {least:,.10g} and at most {most:,.10g} {cost}: swap the bounds"
                )
            if most == 0:
                raise InputError(f"at most 0 {cost} excludes everything; give a larger bound")

    def to_json(self) -> dict[str, list[float | None]]:
        """The bounds as JSON values, without the costs that have none."""
        return {
            cost: list(self.bounds[cost])
            for cost in COSTS
            if any(bound is not None for bound in self.bounds.get(cost, ()))
        }

    @property
    def needs_latency(self) -> bool:
        """Whether latency must be measured."""
        return LATENCY in self.to_json()

    def allows(self, space: Space[Any], arch: Any, clock: Clock) -> bool:
        """Whether the architecture is within every bound; it is timed last, if at all."""
        return all(
            self._within(cost, clock(arch) if cost == LATENCY else count(cost, space, arch))
            for cost in self.to_json()
        )

    def _within(self, cost: str, value: float) -> bool:
        least, most = self.bounds[cost]
        return (least is None or value >= least) and (most is None or value <= most)

    def check(self, space: Space[Any], clock: Clock, pool: Sequence[Any] | None) -> None:
        """Raise InputError unless some sampled or pool architectures are within each bound."""
        if not self.to_json():
            return
        rng = random.Random(0)
        probes = pool if pool is not None else (space.sample(rng) for _ in range(_PROBES))
        seen: dict[str, list[float]] = {cost: [] for cost in self.to_json()}
        for arch in probes:  # the first that is within every bound is enough
            for cost, values in seen.items():
                values.append(clock(arch) if cost == LATENCY else count(cost, space, arch))
                if not self._within(cost, values[-1]):
                    break
            else:
                return
            if len(seen.get(LATENCY, ())) == _TIMED_PROBES:
                break
        for cost, values in seen.items():
            if not any(self._within(cost, value) for value in values):
                raise InputError(self._refusal(cost, space, values))

    def _refusal(self, cost: str, space: Space[Any], values: Sequence[float]) -> str:
        least, most = self.bounds[cost]
        unit = _UNITS.get(cost, "")
        asked = " and ".join(
            f"{word} {bound:,.10g}{unit}"
            for word, bound in (("at least", least), ("at most", most))
            if bound is not None
        )
        return (
            f"none of {len(values):,} architectures of {space.name} has {cost} of {asked}: they"
            f" have {min(values):,.10g} to {max(values):,.10g}{unit}; choose bounds in that range"
        )


def bound_option(word: str, cost: str) -> str:
    """The option of the command line for the least ("min") or the most ("max") of a cost."""
    return f"--{word}-{cost}"


def count(cost: str, space: Space[Any], arch: Any) -> float:
    """A cost that is counted, not timed."""
    return counters.get(cost)(space, arch)


@dataclass(frozen=True, slots=True)
class Stopwatch:
    """Times forward passes of the default batch, one thread, on one device."""

    space: Space[Any]
    device: str = "cpu"

    def __call__(self, arch: Any) -> float:
        """Milliseconds, rounded to microseconds."""
        import torch

        from lpzero.statistics.isolation import resolve_device, single_thread, synchronise

        device = resolve_device(self.device)
        model = self.space.build(arch, 0).to(device)
        batch = self.space.batch(0).to(device)
        seconds = []
        with single_thread(), torch.no_grad():
            for turn in range(WARM_UP + RUNS):
                start = time.perf_counter()
                model(batch)
                synchronise(device)
                if turn >= WARM_UP:
                    seconds.append(time.perf_counter() - start)
        return round(_MILLI * statistics.median(seconds), 3)
