"""ETAS: evolution in which a proxy selects what is evaluated (Algorithm 1, A.3 and A.4).

    draw `samples`, evaluate the `parents` best by proxy
    repeat: `mutants` of the parents, evaluate the `chosen` best by proxy,
            the parents are the best observed so far
    until `iterations` are done or `patience` of them gave no improvement

The paper does not specify repeats; here mutants are distinct, and none was observed before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from lpzero.options import SHARE, Whole, option
from lpzero.search.loops import Loop, best
from spaces.images import ImageSpace

if TYPE_CHECKING:
    from lpzero.search.environment import Environment
    from spaces.base import Space


@dataclass(frozen=True, slots=True)
class Etas(Loop):
    """The constants for GPT-2; for vision 500 samples and probability 0.4."""

    name: ClassVar[str] = "etas"

    samples: int = option(300, "The number of architectures drawn first", Whole(1))
    parents: int = option(3, "The number of best architectures so far that are mutated", Whole(1))
    mutants: int = option(100, "The number of mutants scored per iteration", Whole(1))
    chosen: int = option(3, "The number of mutants evaluated per iteration", Whole(1))
    probability: float = option(0.3, "The probability that a field mutates", SHARE)
    iterations: int = option(10, "The number of iterations", Whole(0))
    patience: int = option(5, "Stop after this many iterations without improvement", Whole(1))

    @classmethod
    def of_space(cls, space: Space[Any]) -> Etas:
        return cls(samples=500, probability=0.4) if isinstance(space, ImageSpace) else cls()

    @property
    def last_step(self) -> int:
        return self.iterations

    def most_scored(self, is_evaluated: bool) -> int:
        return self.samples + self.mutants * self.iterations

    def run(self, environment: Environment) -> Any:
        drawn = environment.sample(self.samples)
        environment.observe(best(drawn, environment.scores(drawn), self.parents), step=0)
        [leader] = environment.best_observed()
        idle = 0
        for step in range(1, self.iterations + 1):
            parents = environment.best_observed(self.parents)
            pool = environment.mutants(
                parents, self.mutants, self.probability, set(environment.observed)
            )
            if not pool:  # the neighbourhood is used up
                break
            environment.observe(best(pool, environment.scores(pool), self.chosen), step)
            [winner] = environment.best_observed()
            idle = idle + 1 if winner == leader else 0
            leader = winner
            if idle == self.patience:
                break
        return leader


LOOP = Etas
