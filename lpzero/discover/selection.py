"""Selection of survivors and parents; every order is total, so ties are never broken at random."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from deap import base, tools

from lpzero.discover.candidate import Candidate, best_first

_TOURNAMENT = 3


def by_front(candidates: Sequence[Candidate], k: int) -> list[Candidate]:
    """The k candidates that NSGA-II selects for every objective and simplicity."""
    if not candidates:
        return []
    kind = _fitness_kind(len(candidates[0].fitness) + 1)
    items = [_Item(candidate, kind) for candidate in best_first(candidates)]
    return [item.candidate for item in tools.selNSGA2(items, min(k, len(items)))]


def tournament(population: Sequence[Candidate]) -> Candidate:
    """The winner of a tournament: half the time by fitness, else by place in the population.

    Call it inside `as_global_rng`.
    """
    places = [random.randrange(len(population)) for _ in range(_TOURNAMENT)]
    if random.random() < 0.5:
        return population[min(places)]
    return best_first([population[place] for place in places])[0]


class _Item:
    """What DEAP selects; its fitness is finite, because rejected candidates are never selected."""

    def __init__(self, candidate: Candidate, kind: type[Any]) -> None:
        self.candidate = candidate
        self.fitness = kind((*candidate.fitness, -float(candidate.complexity)))


@lru_cache(maxsize=8)
def _fitness_kind(n: int) -> type[Any]:
    return type("Fitness", (base.Fitness,), {"weights": (1.0,) * n})
