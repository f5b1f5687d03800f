"""What a search costs: networks to score, times the seconds of one of them; energy and CO2.

Nothing is measured but time; the user states the watts. The factors are those of Strubell et al.
(2019), which papers on language models use: a data centre takes 1.58 times what its machines take,
and a kilowatt-hour of the grid of the United States releases 0.954 pounds of CO2.
"""

from __future__ import annotations

import os
import random
import time
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from lpzero.errors import InputError
from lpzero.parallel import Workers
from lpzero.proxies import Measurements, Needs
from lpzero.search import evaluators
from lpzero.search import ledger as facts
from lpzero.search.ledger import Ledger
from lpzero.search.scorer import Scorer

if TYPE_CHECKING:
    from lpzero.search.environment import Environment
    from lpzero.search.request import Request

# Fewer networks than this take less time than the estimate is worth.
_WORTHWHILE = 30
_DRAWN = 15
_UNITS = ((3600, "h"), (60, "min"))
OVERHEAD = 1.58  # of the data centre: its power over that of its machines
POUNDS_PER_KWH = 0.954
GRAMS_PER_POUND = 453.59237
_SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Cost:
    """At most `n_networks` are scored at `seconds_each`, in one process."""

    n_networks: int
    seconds_each: float

    @property
    def total(self) -> float:
        """The seconds in one process."""
        return self.n_networks * self.seconds_each

    def text(self, jobs: int = 1) -> str:
        """The cost in words, for so many processes."""
        at = f"{self.n_networks:,} networks at {_shown(self.seconds_each)}"
        where = f" in {jobs} processes" if jobs > 1 else ""
        return f"about {_shown(self.total / jobs)}: {at}{where}"


def n_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def most_scored(request: Request) -> int | None:
    """How many networks the search may score; None if its loop, a plug-in's perhaps, cannot say."""
    most = getattr(request.made_loop, "most_scored", None)
    return None if most is None else most(request.evaluator != evaluators.PROXY)


def estimate(request: Request, environment: Environment) -> Cost | None:
    """The cost of what is left to do; None if it is little, or if the loop cannot say.

    Two architectures are drawn and scored, in a folder of their own and with a seed of their own,
    so that neither the search nor the cache is changed: the smallest of some, which loads what is
    loaded once, and then the median, which is timed.
    """
    scorer, most = environment.scorer, most_scored(request)
    left = 0 if most is None else most - environment.ledger.n_recorded(facts.SCORE)
    if left < _WORTHWHILE or scorer.proxy.needs == Needs.NOTHING:
        return None
    rng = random.Random(0)
    sampler = environment.sampler.without_timing()
    drawn = sampler.draw(_DRAWN, lambda: sampler.sample(rng))
    if not drawn:
        return None
    drawn.sort(key=environment.space.flops)
    context = scorer.measurements.context
    with TemporaryDirectory() as folder:
        here = replace(context, folder=Path(folder), label=None, workers=Workers())
        apart = Measurements(here)
        alone = Scorer(scorer.proxy, environment.space, apart, Ledger(environment.space))
        alone.scores(drawn[:1])
        start = time.monotonic()
        alone.scores([drawn[len(drawn) // 2]])
        seconds = time.monotonic() - start
    return Cost(left, seconds)


def _shown(seconds: float) -> str:
    for size, unit in _UNITS:
        if seconds >= 1.5 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.2g} s"


@dataclass(frozen=True, slots=True)
class Footprint:
    """`seconds` on hardware that draws `watts`."""

    seconds: float
    watts: float

    def __post_init__(self) -> None:
        if not (self.watts > 0 and self.seconds >= 0):
            raise InputError(
                f"{self.watts:g} watts for {self.seconds:g} seconds: expected watts above 0"
            )

    @property
    def watt_hours(self) -> float:
        """The energy, with the data centre's share."""
        return OVERHEAD * self.watts * self.seconds / _SECONDS_PER_HOUR

    @property
    def pounds(self) -> float:
        """The CO2 in pounds, the unit of the papers."""
        return POUNDS_PER_KWH * self.watt_hours / 1000

    @property
    def grams(self) -> float:
        return GRAMS_PER_POUND * self.pounds

    def to_json(self) -> dict[str, float]:
        """The assumptions and what follows from them."""
        return {
            "watts": self.watts,
            "overhead": OVERHEAD,
            "pounds_per_kwh": POUNDS_PER_KWH,
            "watt_hours": self.watt_hours,
            "co2_grams": self.grams,
        }

    def __str__(self) -> str:
        return (
            f"{self.watt_hours:.3g} Wh and {self.grams:.3g} g of CO2, if the machine draws"
            f" {self.watts:g} W (times {OVERHEAD} for the data centre, {POUNDS_PER_KWH} lb per kWh)"
        )
