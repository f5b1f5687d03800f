"""Budget: the best architecture that so many trainings find.

    draw `samples` candidates, without networks
    the first `starts`: alternately the best by all counters, and one that is spread over the space
    then the largest expected improvement of a Gaussian process, `at_once` of them at a time;
    each time `mutants` of the best so far become candidates too

The constants are those of a trial on tables (docs/search.md, experiments/budget); the process is in
`lpzero.search.improvement`. With a proxy, its scores of all candidates take the place of the
counters. With `front`, a cost that is known without training, the result is the front of target
against cost: the start takes the largest SEPT (or score) of one bin of costs after another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.errors import InputError
from lpzero.judgement import counters
from lpzero.options import SHARE, OneOf, Whole, option
from lpzero.scores.features import Features, describe_quickly
from lpzero.search.constraints import LATENCY
from lpzero.search.evaluators import LookUp, is_training
from lpzero.search.loops import Loop

if TYPE_CHECKING:
    from lpzero.search.environment import Environment

_PARENTS = 3
_PARAMETERS, _SEPT = "parameters", "sept"
FRONTS = (_PARAMETERS, "flops", LATENCY)


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
    front: str | None = option(
        None,
        f"Trade the target against this cost, {', '.join(FRONTS)}: the result has the front",
        OneOf("cost", FRONTS, is_optional=True),
    )

    @property
    def last_step(self) -> int:
        return self.budget

    def most_scored(self, is_evaluated: bool) -> int | None:
        return None

    def run(self, environment: Environment) -> Any:
        from lpzero.search import improvement  # it needs scipy, which a help text does not

        if self.cost not in (*counters.quick(environment.space), LATENCY):
            raise InputError(
                f"{self.cost} of {environment.space.name} need a pass of every candidate; give"
                f" lpzero.space the argument {self.cost}=, a function of the architecture"
            )
        n_wanted = max(self.samples, self.budget)
        archs = environment.sample(n_wanted)
        is_whole = len(archs) < n_wanted  # there are no more
        described = describe_quickly(environment.space, archs)
        features = Features.of(described)
        rows, counted = features(described), _counted(environment, archs)
        why: dict[Any, str] = {}
        environment.about = lambda arch: {
            "why": why[arch],
            self.cost: _cost(environment, arch, self.cost),
        }
        trained: list[int] = []
        while len(trained) < min(self.budget, len(archs)):
            n = min(self.at_once, self.budget - len(trained))
            prior = _prior(environment, archs, counted)
            costs = self._costs(environment, archs)
            candidates = improvement.Candidates(rows, prior, costs)
            first = improvement.Candidates(rows, self._start_by(environment, archs, prior), costs)
            chosen: list[int] = []
            for place in range(len(trained), min(len(trained) + n, self.starts)):
                index, reason = first.start(
                    place, trained + chosen, environment.rng, -(-self.starts // 2)
                )
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

    @property
    def cost(self) -> str:
        """The cost that the trace has beside the target."""
        return self.front or _PARAMETERS

    def conclude(self, environment: Environment) -> dict[str, Any]:
        """The front, what other orders would have found in a table, what explains the targets."""
        known = [arch for arch in environment.observed if environment.target(arch) is not None]
        found: dict[str, Any] = {}
        if self.front is not None:
            found["front"] = [
                {"arch": environment.space.to_json(arch), self.front: cost, "target": target}
                for arch, cost, target in self._members(environment)
            ]
        from lpzero.search.explanation import explanation, sentence
        from lpzero.search.orders import orders

        evaluator = environment.evaluator
        if isinstance(evaluator, LookUp) and environment.sampler.pool:
            found["orders"] = orders(evaluator, environment.sampler.pool, len(known))
        if evaluator is not None and is_training(evaluator.name):
            targets = environment.values(known)
            found["explanation"] = explanation(environment.space, known, targets)
            if found["explanation"]:
                environment.remark(sentence(found["explanation"]))
        return {name: value for name, value in found.items() if value}

    def _costs(self, environment: Environment, archs: Sequence[Any]) -> FloatArray | None:
        """The logarithms (n,) of the cost that is traded, if one is."""
        if self.front is None:
            return None
        return np.log([max(1e-9, _cost(environment, arch, self.front)) for arch in archs])

    def _start_by(
        self, environment: Environment, archs: Sequence[Any], prior: FloatArray
    ) -> FloatArray:
        """What the start takes the largest of (n,): the prior; SEPT where costs are equal."""
        space = environment.space
        if self.front is None or environment.is_guided or _SEPT not in counters.quick(space):
            return prior
        return np.array([counters.sept(space, arch) for arch in archs])

    def _members(self, environment: Environment) -> list[tuple[Any, float, float]]:
        """The front of what is trained: architecture, cost and target, the cheapest first."""
        from lpzero.search.improvement import front

        known = [arch for arch in environment.observed if environment.target(arch) is not None]
        targets = environment.values(known)
        costs = np.array([_cost(environment, arch, self.cost) for arch in known])
        return [
            (known[row], float(costs[row]), float(targets[row])) for row in front(targets, costs)
        ]

    def _neighbours(self, environment: Environment, archs: Sequence[Any]) -> list[Any]:
        """Mutants of the best that are no candidates yet; a table's rows are drawn at once."""
        if not self.mutants or environment.sampler.pool is not None:
            return []
        parents = environment.best_observed(_PARENTS)
        if self.front is not None:
            parents = [arch for arch, _, _ in self._members(environment)] or parents
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


def _cost(environment: Environment, arch: Any, name: str) -> float:
    if name == LATENCY:
        return environment.sampler.clock(arch)
    return counters.get(name)(environment.space, arch)


LOOP = Budget
