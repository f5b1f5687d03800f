"""What a campaign has found so far: its counts, its history and its hall of fame.

The hall of fame has the best formulas and the front of fitness against complexity. Formulas with
the same key share one entry, and so do formulas with equal measures: the simplest is kept. The
report picks the winner among the entries. A tally is the same whether candidates come from a
running campaign or from the lines of a journal; no text is parsed before rows are asked for.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import groupby
from typing import Any

from lpzero.discover.candidate import Candidate, best_first, order
from primitives.canonical import canonical
from primitives.errors import FormulaError
from primitives.parser import parse
from primitives.properties import on_change

SIZE = 50
_TOGETHER = 100  # candidates that enter at a time


@dataclass(frozen=True)
class HallOfFame:
    """The `entries`, best first: the `size` best, and every other member of the front."""

    entries: tuple[Candidate, ...] = ()
    size: int = SIZE

    @cached_property
    def front(self) -> tuple[Candidate, ...]:
        """The entries that no other one matches or beats in every objective and in simplicity."""
        return tuple(front(self.entries))

    @cached_property
    def _worst(self) -> float:
        """The fitness that a candidate needs to enter, unless it belongs to the front."""
        if len(self.entries) < self.size:
            return -math.inf
        return self.entries[self.size - 1].fitness[0]

    def may_enter(self, candidate: Candidate) -> bool:
        """Whether the candidate is not worse than the last of the best, or not dominated."""
        if candidate.fitness[0] >= self._worst:
            return True
        # A candidate that an entry dominates is dominated by one of the front.
        return not any(_dominates(entry, candidate) for entry in self.front)

    def rows(self, tables: Sequence[str]) -> list[dict[str, Any]]:
        """The entries as flat rows: formula, complexity, measures on each table, lineage.

        Entries with operations that are not known here, such as a plug-in's, are left out.
        """
        in_front, rows = {entry.id for entry in self.front}, []
        for entry in self.entries:
            with suppress(FormulaError):
                rows.append(_row(entry, entry.id in in_front, tables))
        return rows


def admit(hall: HallOfFame, candidates: Iterable[Candidate]) -> HallOfFame:
    """The hall of fame with the candidates that qualify added."""
    entering: list[Candidate] = []
    for candidate in candidates:
        if candidate.fitness and candidate.key is not None and hall.may_enter(candidate):
            entering.append(candidate)
            if len(entering) == _TOGETHER:
                hall, entering = _with(hall, entering), []
    return _with(hall, entering) if entering else hall


def _with(hall: HallOfFame, entering: Sequence[Candidate]) -> HallOfFame:
    distinct = _distinct([*hall.entries, *entering])
    kept = {c.id for c in front(distinct)} | {c.id for c in distinct[: hall.size]}
    return HallOfFame(tuple(c for c in distinct if c.id in kept), hall.size)


def front(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The candidates that no other one matches or beats in every objective and in simplicity."""
    kept: list[Candidate] = []
    for candidate in best_first(candidates):
        if not any(_dominates(other, candidate) for other in kept):
            kept = [other for other in kept if not _dominates(candidate, other)]
            kept.append(candidate)
    return kept


def _distinct(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Best first, without formulas that share their key or all measures with a better one."""
    by_measures: dict[Any, Candidate] = {}
    keys: set[str | None] = set()
    for candidate in best_first(candidates):
        if candidate.key not in keys and candidate.measures not in by_measures:
            by_measures[candidate.measures] = candidate
            keys.add(candidate.key)
    return list(by_measures.values())


def _dominates(other: Candidate, candidate: Candidate) -> bool:
    """Whether the other is at least as good in every objective and in simplicity."""
    return other.complexity <= candidate.complexity and all(
        a >= b for a, b in zip(other.fitness, candidate.fitness, strict=False)
    )


@lru_cache(maxsize=1024)  # the same entries are written again and again
def _canonical_text(text: str) -> str:
    return str(canonical(parse(text)))


on_change(_canonical_text.cache_clear)


def _row(entry: Candidate, in_front: bool, tables: Sequence[str]) -> dict[str, Any]:
    row: dict[str, Any] = {
        "formula": _canonical_text(entry.text),
        "complexity": entry.complexity,
        "front": in_front,
        "fitness": entry.fitness[0],
    }
    for table, measures in zip(tables, entry.measures, strict=True):
        row |= {f"{table} {name}": value for name, value in measures._asdict().items()}
    return row | {
        "id": entry.id,
        "generation": entry.generation,
        "operator": entry.operator,
        "parents": " ".join(map(str, entry.parents)),
        "key": entry.key,
    }


@dataclass(slots=True)
class Tally:
    """The numbers of candidates tried, evaluated, rejected (by rule) and repeated; the best so far.

    A formula whose scores are constant or not finite counts as evaluated and as rejected.
    `history` has a row per generation.
    """

    tried: int = 0
    evaluated: int = 0
    repeats: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    best: Candidate | None = None
    history: list[dict[str, Any]] = field(default_factory=list)
    hall: HallOfFame = field(default_factory=HallOfFame)

    @property
    def counts(self) -> dict[str, int]:
        """How many were tried, evaluated and repeated."""
        return {"tried": self.tried, "evaluated": self.evaluated, "repeats": self.repeats}

    def count(self, candidates: Sequence[Candidate]) -> None:
        """Count the candidates that follow those counted before."""
        for generation, members in groupby(candidates, key=lambda c: c.generation):
            self._count(generation, list(members))
        self.hall = admit(self.hall, candidates)

    def _count(self, generation: int, members: list[Candidate]) -> None:
        self.tried += len(members)
        self.evaluated += sum([member.key is not None for member in members])
        self.repeats += sum([member.repeats is not None for member in members])
        self.rejected.update([m.rejected for m in members if m.rejected is not None])
        scored = [member for member in members if member.fitness]
        if self.best is not None:
            scored.append(self.best)
        if not scored:
            return
        self.best = min(scored, key=order)
        row = {
            "generation": generation,
            "tried": self.tried,
            "evaluated": self.evaluated,
            "rejected": self.rejected.total(),
            "repeats": self.repeats,
            "fitness": self.best.fitness[0],
            "complexity": self.best.complexity,
            "best": self.best.id,
            "formula": self.best.text,
        }
        if self.history and self.history[-1]["generation"] == generation:
            self.history[-1] = row  # the rest of the generation
        else:
            self.history.append(row)
