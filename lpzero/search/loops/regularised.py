"""Regularised evolution, the baseline: the oldest dies, not the worst (Real et al. 2019).

    evaluate a random `population`
    repeat: mutate the best of `tournament` members drawn at random, evaluate the mutant,
            replace the oldest member by it
    until `evaluations` are done

The proxy is maximised if there is no evaluator, and unused otherwise. The paper runs 20,000
evaluations; the default is a number that a table or a surrogate evaluates in seconds.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from lpzero.errors import InputError
from lpzero.options import SHARE, Whole, check, option
from lpzero.search.loops import Loop, best

if TYPE_CHECKING:
    from lpzero.search.environment import Environment


@dataclass(frozen=True, slots=True)
class Regularised(Loop):
    """The paper's population and tournament; a field mutates with the given probability."""

    name: ClassVar[str] = "regularised"

    population: int = option(100, "The size of the population", Whole(1))
    tournament: int = option(
        25, "The number of members drawn, the best of which is mutated", Whole(1)
    )
    evaluations: int = option(500, "The number of architectures evaluated", Whole(1))
    probability: float = option(0.3, "The probability that a field mutates", SHARE)

    def __post_init__(self) -> None:
        check(self)
        if self.population > self.evaluations:
            raise InputError(
                f"a population of {self.population} needs as many evaluations, not"
                f" {self.evaluations}: lower --population or raise --evaluations"
            )

    @property
    def last_step(self) -> int:
        return self.evaluations - self.population

    def most_scored(self, is_evaluated: bool) -> int:
        return 1 if is_evaluated else self.evaluations  # its winner's score is shown

    def run(self, environment: Environment) -> Any:
        first = environment.sample(self.population)
        environment.observe(first, step=0)
        members = deque(first)
        for step in range(1, self.evaluations - len(first) + 1):
            drawn = environment.rng.sample(list(members), min(self.tournament, len(members)))
            parent = best(drawn, environment.values(drawn), 1)
            child = environment.mutants(parent, 1, self.probability, set(environment.observed))
            if not child:  # nothing new near this parent
                continue
            environment.observe(child, step)
            members.append(child[0])
            members.popleft()
        return environment.best_observed()[0]


LOOP = Regularised
