"""The hall of fame: the best formulas and the front of fitness against complexity, each once.

Formulas with the same key share one entry, and so do formulas with equal measures: the simplest is
kept. The report picks the winner among the entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from lpzero.discover.candidate import Candidate
from lpzero.discover.selection import best_first
from primitives.canonical import canonical

SIZE = 50


@dataclass(frozen=True, slots=True)
class HallOfFame:
    """The `entries`, best first: the `size` best, and every other member of the front."""

    entries: tuple[Candidate, ...] = ()
    size: int = SIZE

    @property
    def front(self) -> tuple[Candidate, ...]:
        """The entries that no other one matches or beats in every objective and in simplicity."""
        return tuple(front(self.entries))

    def rows(self, tables: Sequence[str]) -> list[dict[str, Any]]:
        """The entries as flat rows: formula, complexity, measures on each table, lineage."""
        in_front = {entry.id for entry in self.front}
        return [_row(entry, entry.id in in_front, tables) for entry in self.entries]


def admit(hall: HallOfFame, candidates: Iterable[Candidate]) -> HallOfFame:
    """The hall of fame with the candidates that qualify added."""
    fresh = [c for c in candidates if c.is_scored and c.key is not None]
    if len(hall.entries) >= hall.size:
        worst = best_first(hall.entries)[hall.size - 1]
        fresh = [c for c in fresh if _could_enter(c, worst, hall.entries)]
    if not fresh:
        return hall
    distinct = _distinct([*hall.entries, *fresh])
    kept = {c.id for c in front(distinct)} | {c.id for c in distinct[: hall.size]}
    return HallOfFame(tuple(c for c in distinct if c.id in kept), hall.size)


def front(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The candidates that no other one matches or beats in every objective and in simplicity."""
    kept: list[Candidate] = []
    for candidate in best_first(list(candidates)):
        if not any(_dominates(other, candidate) for other in kept):
            kept = [other for other in kept if not _dominates(candidate, other)]
            kept.append(candidate)
    return kept


def _distinct(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Best first, without formulas that share their key or all measures with a better one."""
    found: dict[Any, Candidate] = {}
    keys: set[str | None] = set()
    for candidate in best_first(candidates):
        if candidate.key not in keys and candidate.measures not in found:
            found[candidate.measures] = candidate
            keys.add(candidate.key)
    return list(found.values())


def _dominates(other: Candidate, candidate: Candidate) -> bool:
    """Whether the other is at least as good in every objective and in simplicity."""
    return other.complexity <= candidate.complexity and all(
        a >= b for a, b in zip(other.fitness, candidate.fitness, strict=True)
    )


def _could_enter(candidate: Candidate, worst: Candidate, entries: Sequence[Candidate]) -> bool:
    if candidate.fitness[0] >= worst.fitness[0]:
        return True
    return not any(_dominates(entry, candidate) for entry in entries)


def _row(entry: Candidate, in_front: bool, tables: Sequence[str]) -> dict[str, Any]:
    shown = canonical(entry.formula)
    row: dict[str, Any] = {
        "formula": str(shown),
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
