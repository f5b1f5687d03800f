"""Random search, the baseline: draw once, then rank by the proxy.

Without an evaluator the best of `samples` by proxy is the result (the "Random" rows of Table V of
T-Razor). With one, the `evaluations` best by proxy are evaluated, best first; under proxy `none`
that is plain random search.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from lpzero.options import Whole, option
from lpzero.search.loops import Loop, best

if TYPE_CHECKING:
    from lpzero.search.environment import Environment

_AT_ONCE = 50


@dataclass(frozen=True, slots=True)
class RandomSearch(Loop):
    """How many are drawn and how many evaluated; by default as many as ETAS evaluates."""

    name: ClassVar[str] = "random"

    samples: int = option(1000, "The number of architectures drawn first", Whole(1))
    evaluations: int = option(33, "The number of architectures evaluated", Whole(1))

    @property
    def last_step(self) -> int:
        return -(-self.samples // _AT_ONCE)

    def most_scored(self, is_evaluated: bool) -> int:
        return self.samples

    def run(self, environment: Environment) -> Any:
        drawn = environment.sample(self.samples)
        n_steps = -(-len(drawn) // _AT_ONCE)
        for step in range(1, n_steps + 1):
            scored = drawn[: step * _AT_ONCE]
            scores = environment.scores(scored)
            if environment.evaluator is None:
                environment.note(step, best(scored, scores, 1)[0])
        order = best(drawn, environment.scores(drawn), len(drawn))
        if environment.evaluator is None:
            return order[0]
        for arch in order[: self.evaluations]:
            environment.observe([arch], n_steps)
        return environment.best_observed()[0]


LOOP = RandomSearch
