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
from lpzero.search.evaluators import Evaluator
from lpzero.search.ledger import Ledger
from lpzero.search.loops import best
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
        self.remarks: list[str] = []
        # Of each entry of the trace the architecture, and how many were observed by then.
        self._noted: list[tuple[Any, int]] = []
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
            entry["best"] = _finite(self.values(self.observed).max())
        entry |= self.about(arch)
        self.trace.append(entry)
        self._noted.append((arch, len(self.observed)))
        self._show(entry)

    def remark(self, text: str) -> None:
        """Say something about the search in its result."""
        self.remarks.append(text)

    def settle_trace(self) -> None:
        """Rank the scores of a relative proxy in the trace again, among everything scored.

        While a search works, each entry has its score among what was scored until then, and such
        scores grow with their number. In the end all are ranked in one set.
        """
        if not self.scorer.proxy.is_relative:
            return
        known = self.ledger.known(facts.SCORE)
        scores = dict(zip(known, self.scores(known), strict=True))
        for entry, (arch, n_observed) in zip(self.trace, self._noted, strict=True):
            entry["score"] = _finite(scores.get(arch, -math.inf))
            if self.evaluator is None:
                by_then = [scores[seen] for seen in self.observed[:n_observed]]
                entry["best"] = _finite(max(by_then)) if by_then else entry["score"]

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
        return _finite(self.scores([arch])[0])


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
