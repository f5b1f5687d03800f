"""Budget: the best architecture that so many trainings find.

    draw `samples` candidates, without networks
    the first `starts`: alternately the best by all counters, and one that is spread over the space
    then the largest expected improvement of a Gaussian process, `at_once` of them at a time;
    each time `mutants` of the best so far become candidates too

The constants are those of a trial on tables (docs/search.md, experiments/budget); the process is in
`lpzero.search.improvement`. With a proxy, its scores of all candidates take the place of the
counters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.judgement import counters
from lpzero.options import SHARE, Whole, option
from lpzero.scores.features import Features, describe_quickly
from lpzero.search.loops import Loop

if TYPE_CHECKING:
    from lpzero.search.environment import Environment

_PARENTS = 3


@dataclass(frozen=True, slots=True)
class Budget(Loop):
    """The number of trainings, and how they are chosen."""

    name: ClassVar[str] = "budget"
    usual_proxy: ClassVar[str | None] = "none"

    budget: int = option(30, "The number of trainings", Whole(1))
    at_once: int = option(
        1, "The number of trainings chosen together, which --jobs can run side by side", Whole(1)
    )
    samples: int = option(1000, "The number of architectures drawn first", Whole(1))
    starts: int = option(6, "The number of trainings before the model chooses", Whole(1))
    mutants: int = option(50, "The number of mutants of the best that become candidates", Whole(0))
    probability: float = option(0.3, "The probability that a field mutates", SHARE)

    @property
    def last_step(self) -> int:
        return self.budget

    def most_scored(self, is_evaluated: bool) -> int | None:
        return None

    def run(self, environment: Environment) -> Any:
        from lpzero.search import improvement  # it needs scipy, which a help text does not

        n_wanted = max(self.samples, self.budget)
        archs = environment.sample(n_wanted)
        is_whole = len(archs) < n_wanted  # there are no more
        described = describe_quickly(environment.space, archs)
        features = Features.of(described)
        rows, counted = features(described), _counted(environment, archs)
        why: dict[Any, str] = {}
        environment.about = lambda arch: {"why": why[arch]}
        trained: list[int] = []
        while len(trained) < min(self.budget, len(archs)):
            n = min(self.at_once, self.budget - len(trained))
            candidates = improvement.Candidates(rows, _prior(environment, archs, counted))
            chosen: list[int] = []
            for place in range(len(trained), min(len(trained) + n, self.starts)):
                index, reason = candidates.start(place, trained + chosen, environment.rng)
                why[archs[index]] = reason
                chosen.append(index)
            if not chosen:
                targets = environment.values([archs[i] for i in trained])
                chosen = improvement.choose(candidates, trained, targets, n)
                why |= {archs[i]: improvement.IMPROVEMENT for i in chosen}
            environment.observe([archs[i] for i in chosen], len(trained) + len(chosen))
            trained += chosen
            if self.starts <= len(trained) < self.budget and not is_whole:
                new = self._neighbours(environment, archs)
                archs = [*archs, *new]
                rows = np.concatenate([rows, features(describe_quickly(environment.space, new))])
                counted = np.concatenate([counted, _counted(environment, new)], axis=1)
        return environment.best_observed()[0]

    def _neighbours(self, environment: Environment, archs: Sequence[Any]) -> list[Any]:
        """Mutants of the best that are no candidates yet; a table's rows are drawn at once."""
        if not self.mutants or environment.sampler.pool is not None:
            return []
        parents = environment.best_observed(_PARENTS)
        return environment.mutants(parents, self.mutants, self.probability, set(archs))


def _counted(environment: Environment, archs: Sequence[Any]) -> FloatArray:
    """Every counter of every architecture (C, n); with a proxy none is needed."""
    space = environment.space
    names = [] if environment.is_guided else counters.quick(space)
    columns = [[counters.get(name)(space, arch) for arch in archs] for name in names]
    return np.array(columns, dtype=np.float64).reshape(len(names), len(archs))


def _prior(environment: Environment, archs: Sequence[Any], counted: FloatArray) -> FloatArray:
    """What is known of each architecture (n,) without training: by the proxy, or by counting."""
    from lpzero.search import improvement

    if environment.is_guided:
        return improvement.values_of(environment.scores(archs))
    return improvement.prior_of(counted)


LOOP = Budget
