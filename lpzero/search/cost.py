"""What a search will cost: how many networks it scores, times the seconds of one of them."""

from __future__ import annotations

import os
import random
import time
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

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
