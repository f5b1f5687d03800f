"""The environment of a search loop: architectures to draw, scores, targets, and the trace.

A loop gets all its information from here, and the ledger records all of it. A loop maximises
`values`: the targets if there is an evaluator, else the scores.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Container, Sequence
from typing import Any

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.errors import InputError
from lpzero.search import ledger as facts
from lpzero.search.best import best
from lpzero.search.evaluators import Evaluator
from lpzero.search.ledger import Ledger
from lpzero.search.sampler import Sampler
from lpzero.search.scorer import Scorer

Entry = dict[str, Any]


class Environment:
    """One search's sampler, scorer, evaluator and trace."""

    def __init__(
        self,
        sampler: Sampler,
        scorer: Scorer,
        evaluator: Evaluator | None,
        ledger: Ledger,
        rng: random.Random,
        show: Callable[[Entry], None] = lambda entry: None,
    ) -> None:
        self.sampler, self.scorer, self.evaluator = sampler, scorer, evaluator
        self.ledger, self.rng, self._show = ledger, rng, show
        self.space = sampler.space
        self.observed: list[Any] = []
        self.trace: list[Entry] = []
        # What a loop has to say of an architecture beside its score, for the trace.
        self.about: Callable[[Any], Entry] = lambda arch: {}

    def sample(self, n: int) -> list[Any]:
        """Up to n distinct architectures; at least one."""
        found = self.sampler.draw(n, lambda: self.sampler.sample(self.rng))
        if not found:
            raise InputError("no architecture within the bounds was found; choose wider ones")
        return found

    def mutants(
        self, parents: Sequence[Any], n: int, probability: float, taken: Container[Any]
    ) -> list[Any]:
        """Up to n distinct mutants of parents drawn at random, none of them taken."""
        return self.sampler.draw(
            n,
            lambda: self.space.mutate(self.rng.choice(parents), probability, self.rng),
            taken,
        )

    def scores(self, archs: Sequence[Any]) -> FloatArray:
        """The scores (n,), ranked among all scored so far; -inf for those without a score."""
        return self.scorer.scores(archs)

    def observe(self, archs: Sequence[Any], step: int) -> None:
        """Evaluate the architectures, or score them if there is no evaluator."""
        if self.evaluator is None:
            self.scores(archs)
        else:
            self.ledger.find(facts.TARGET, archs, self.evaluator.evaluate)
        for arch in archs:
            self.observed.append(arch)
            self.note(step, arch)

    def values(self, archs: Sequence[Any]) -> FloatArray:
        """The maximised values (n,) of observed architectures."""
        if self.evaluator is None:
            return self.scores(archs)
        return np.array([self.ledger.get(facts.TARGET, arch) for arch in archs])

    def best_observed(self, n: int = 1) -> list[Any]:
        """The n best observed, best first; ties keep the order of observation."""
        return best(self.observed, self.values(self.observed), n)

    def best_so_far(self, by_proxy: bool) -> Any:
        """The best that is known when a search is stopped: by target if any is, else by score."""
        if self.observed:
            return self.best_observed()[0]
        evaluated = [] if by_proxy else self.ledger.known(facts.TARGET)
        known = evaluated or self.ledger.known(facts.SCORE)
        return best(known, (self.values if evaluated else self.scores)(known), 1)[0]

    def note(self, step: int, arch: Any) -> None:
        """Add an entry to the trace: the architecture, and the best value so far."""
        entry: Entry = {
            "step": step,
            "scored": self.scorer.n_scored,
            "evaluations": len(self.observed) if self.evaluator is not None else 0,
            "arch": self.space.to_json(arch),
            "score": self._score(arch),
        }
        if self.evaluator is not None:
            entry["target"] = self.target(arch)
        entry["best"] = entry["score" if self.evaluator is None else "target"]
        if self.observed:
            top = float(self.values(self.observed).max())
            entry["best"] = top if math.isfinite(top) else None
        entry |= self.about(arch)
        self.trace.append(entry)
        self._show(entry)

    def target(self, arch: Any) -> float | None:
        """The target if it is known and its training did not fail."""
        found = self.ledger.get(facts.TARGET, arch)
        return None if found == -math.inf else found

    def look_up_target(self, arch: Any) -> None:
        """Record the architecture's target for the trace if that is free; loops do not use it."""
        if self.evaluator is not None and self.evaluator.is_free:
            self.ledger.find(facts.TARGET, [arch], self.evaluator.evaluate)

    def _score(self, arch: Any) -> float | None:
        if self.ledger.get(facts.SCORE, arch) is None:
            return None
        score = float(self.scores([arch])[0])
        return score if math.isfinite(score) else None
