"""Counts and history of a campaign, computed from its candidates alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from lpzero.discover.candidate import Candidate
from lpzero.discover.selection import best_first


@dataclass(slots=True)
class Tally:
    """The numbers of candidates tried, evaluated, rejected (by rule) and repeated; the best so far.

    A formula whose scores are constant or not finite counts as evaluated and as rejected.
    """

    tried: int = 0
    evaluated: int = 0
    repeats: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    best: Candidate | None = None
    history: list[dict[str, Any]] = field(default_factory=list)

    def count(self, candidates: Iterable[Candidate]) -> None:
        """Count these candidates, generation by generation."""
        groups: dict[int, list[Candidate]] = {}
        for candidate in candidates:
            groups.setdefault(candidate.generation, []).append(candidate)
        for generation, members in groups.items():
            self._count(generation, members)

    def _count(self, generation: int, members: list[Candidate]) -> None:
        scored = [member for member in members if member.is_scored]
        self.tried += len(members)
        self.evaluated += sum(member.key is not None for member in members)
        self.repeats += sum(member.repeats is not None for member in members)
        self.rejected.update(m.rejected for m in members if m.rejected is not None)
        if self.best is not None:
            scored.append(self.best)
        if not scored:
            return
        self.best = best_first(scored)[0]
        self.history.append(
            {
                "generation": generation,
                "evaluated": self.evaluated,
                "rejected": self.rejected.total(),
                "repeats": self.repeats,
                "fitness": self.best.fitness[0],
                "complexity": self.best.complexity,
                "best": self.best.id,
                "formula": str(self.best.formula),
            }
        )
