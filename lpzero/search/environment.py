"""The environment of a search loop: architectures to draw, scores, targets, and the trace.

A loop gets all its information from here, and the ledger records all of it. A loop maximises
`values`: the targets if there is an evaluator, else the scores.

Architectures are drawn from a space, or from a pool, within the constraints. A pool (a table's
architectures) is sampled uniformly. An offspring that is not in the pool is replaced by the nearest
member: the smallest Euclidean distance of standardised features. Features ignore the order of
blocks, so of equally near members the one with the most equal blocks is used, then the first.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Container, Sequence
from typing import Any

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.errors import InputError
from lpzero.scores.features import Features, describe
from lpzero.search import ledger as facts
from lpzero.search.constraints import LATENCY, Clock, Constraints
from lpzero.search.evaluators import Evaluator, TrainingError
from lpzero.search.ledger import Ledger
from lpzero.search.loops import best
from lpzero.search.scorer import NO_PROXY, Scorer
from spaces.base import Space

Entry = dict[str, Any]
# Told the number of the first of some evaluations that begin, and the architectures.
Begin = Callable[[int, list[Entry]], None]
_FAILED = 3  # trainings, all that there are: then the function is wrong, not the architectures
# Draws in a row without a new architecture before drawing stops.
PATIENCE = 20_000


class Sampler:
    """Draws distinct architectures that the constraints allow.

    `is_inside`, if given, is False for architectures that must not be drawn either.
    """

    def __init__(
        self,
        space: Space[Any],
        constraints: Constraints,
        clock: Clock,
        pool: Sequence[Any] | None = None,
        is_inside: Callable[[Any], bool] | None = None,
    ) -> None:
        self.space, self.constraints, self.clock = space, constraints, clock
        self._is_inside = is_inside
        self._allowed: dict[Any, bool] = {}
        self.pool: list[Any] | None = None
        if pool is not None:
            self.pool = [arch for arch in dict.fromkeys(pool) if self.allows(arch)]
            if not self.pool:
                raise InputError("no architecture of the table is within all the bounds")
            self._members = set(self.pool)
            described = describe(space, self.pool)
            self._features = Features.of(described)
            self._pool_features = self._features(described)

    def allows(self, arch: Any) -> bool:
        """Whether the constraints allow it, and it is inside what may be drawn."""
        if arch not in self._allowed:
            is_inside = self._is_inside is None or self._is_inside(arch)
            allowed = is_inside and self.constraints.allows(self.space, arch, self.clock)
            self._allowed[arch] = allowed
        return self._allowed[arch]

    def without_timing(self) -> Sampler:
        """The same, without the bounds of measured latency."""
        counted = Constraints({k: v for k, v in self.constraints.bounds.items() if k != LATENCY})
        return Sampler(self.space, counted, self.clock, self.pool, self._is_inside)

    def sample(self, rng: random.Random) -> Any:
        """A random architecture, within the constraints or not."""
        return self.space.sample(rng) if self.pool is None else rng.choice(self.pool)

    def snap_to_pool(self, arch: Any) -> Any:
        """The nearest architecture of the pool; the architecture itself if there is no pool."""
        if self.pool is None or arch in self._members:
            return arch
        own = self._features(describe(self.space, [arch]))
        distances = ((self._pool_features - own) ** 2).sum(axis=1)
        nearest = [self.pool[i] for i in np.flatnonzero(distances == distances.min())]
        return max(nearest, key=lambda other: self._n_equal_blocks(arch, other))

    def _n_equal_blocks(self, arch: Any, other: Any) -> int:
        """How many blocks are equal at the same position."""
        pairs = zip(self.space.blocks(arch), self.space.blocks(other), strict=False)
        return sum(mine == theirs for mine, theirs in pairs)

    def draw(
        self,
        n: int,
        make: Callable[[], Any],
        taken: Container[Any] = (),
        patience: int = PATIENCE,
    ) -> list[Any]:
        """Up to n distinct allowed architectures from `make` that are not in `taken`.

        Fewer if many draws in a row give nothing new: the pool or neighbourhood is exhausted.
        """
        drawn: dict[Any, None] = {}
        misses = 0
        limit = patience if self.pool is None else min(patience, 50 * len(self.pool))
        while len(drawn) < n and misses < limit:
            arch = self.snap_to_pool(make())
            if arch in drawn or arch in taken or not self.allows(arch):
                misses += 1
                continue
            drawn[arch] = None
            misses = 0
        return list(drawn)


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
        begin: Begin = lambda number, archs: None,
    ) -> None:
        self.sampler, self.scorer, self.evaluator = sampler, scorer, evaluator
        self.ledger, self.rng, self._show, self._begin = ledger, rng, show, begin
        self.space = sampler.space
        self.observed: list[Any] = []
        self.trace: list[Entry] = []
        self.remarks: list[str] = []
        # Of each entry of the trace the architecture, and how many were observed by then.
        self._noted: list[tuple[Any, int]] = []
        # What a loop has to say of an architecture beside its score, for the trace.
        self.about: Callable[[Any], Entry] = lambda arch: {}

    @property
    def is_guided(self) -> bool:
        """Whether there is a proxy."""
        return self.scorer.proxy.name != NO_PROXY

    def sample(self, n: int) -> list[Any]:
        """Up to n distinct architectures; at least one."""
        drawn = self.sampler.draw(n, lambda: self.sampler.sample(self.rng))
        if not drawn:
            raise InputError("no architecture within the bounds was found; choose wider ones")
        return drawn

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
            new = [arch for arch in archs if not self.ledger.is_recorded(facts.TARGET, arch)]
            first = len(self.observed) + len(archs) - len(new) + 1
            self._begin(first, [self.space.to_json(arch) for arch in new])
            self.ledger.find(facts.TARGET, archs, self.evaluator.evaluate)
        for arch in archs:
            self.observed.append(arch)
            self.note(step, arch)
        self._check_trainings()

    def _check_trainings(self) -> None:
        """Raise TrainingError if there are some trainings and all of them failed."""
        reasons = [self.failure(arch) for arch in self.observed]
        if len(reasons) >= _FAILED and all(reason is not None for reason in reasons):
            raise TrainingError(f"the first {len(reasons)} trainings all failed: {reasons[-1]}")

    def values(self, archs: Sequence[Any]) -> FloatArray:
        """The maximised values (n,) of observed architectures."""
        if self.evaluator is None:
            return self.scores(archs)
        targets = (self.target(arch) for arch in archs)
        return np.array([-math.inf if target is None else target for target in targets])

    def best_observed(self, n: int = 1) -> list[Any]:
        """The n best observed, best first; ties keep the order of observation."""
        return best(self.observed, self.values(self.observed), n)

    def best_so_far(self, by_proxy: bool) -> Any:
        """The best that is known when a search is stopped: by target if any is, else by score."""
        if self.observed:
            return self.best_observed()[0]
        evaluated = [] if by_proxy else self.ledger.archs(facts.TARGET)
        if evaluated:
            return best(evaluated, self.values(evaluated), 1)[0]
        scored = self.ledger.archs(facts.SCORE)
        return best(scored, self.scores(scored), 1)[0]

    def note(self, step: int, arch: Any) -> None:
        """Add an entry to the trace: the architecture, and the best value so far."""
        entry: Entry = {
            "step": step,
            "scored": self.scorer.n_scored,
            "evaluations": len(self.observed) if self.evaluator is not None else 0,
            "arch": self.space.to_json(arch),
            "score": self.score(arch),
        }
        if self.evaluator is not None:
            entry["target"] = self.target(arch)
        entry["best"] = entry["score" if self.evaluator is None else "target"]
        if self.observed:
            entry["best"] = _finite(self.values(self.observed).max())
        entry |= self.about(arch)
        failure = self.failure(arch)
        entry |= {} if failure is None else {"failure": failure}
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
        scored = self.ledger.archs(facts.SCORE)
        scores = dict(zip(scored, self.scores(scored), strict=True))
        for entry, (arch, n_observed) in zip(self.trace, self._noted, strict=True):
            entry["score"] = _finite(scores.get(arch, -math.inf))
            if self.evaluator is None:
                by_then = [scores[seen] for seen in self.observed[:n_observed]]
                entry["best"] = _finite(max(by_then)) if by_then else entry["score"]

    def target(self, arch: Any) -> float | None:
        """The target if it is known and its training did not fail."""
        target: float | str | None = self.ledger.get(facts.TARGET, arch)
        return None if isinstance(target, str) else target

    def failure(self, arch: Any) -> str | None:
        """Why its training failed; None if it did not."""
        target = self.ledger.get(facts.TARGET, arch)
        return target if isinstance(target, str) else None

    def look_up_target(self, arch: Any) -> None:
        """Record the architecture's target for the trace if that is free; loops do not use it."""
        if self.evaluator is not None and self.evaluator.is_free:
            self.ledger.find(facts.TARGET, [arch], self.evaluator.evaluate)

    def score(self, arch: Any) -> float | None:
        """The score if it is known and finite."""
        if self.ledger.get(facts.SCORE, arch) is None:
            return None
        return _finite(self.scores([arch])[0])


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
