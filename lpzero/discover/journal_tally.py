"""Counts, history and hall of fame of a campaign, from the records of its journal as they come.

The same numbers as `Tally` and `admit` give, but a formula is parsed only if it can enter the hall
of fame: a journal of hundreds of thousands of lines takes a second or two.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from lpzero.discover.candidate import Candidate
from lpzero.discover.hall_of_fame import HallOfFame, admit
from lpzero.discover.selection import best_first
from lpzero.discover.storage import is_candidate

Row = Mapping[str, Any]
_Rank = tuple[float, int, int]  # of the best: minus fitness, complexity, id
_TOGETHER = 100  # formulas that enter the hall of fame at a time


def is_tried(record: dict[str, Any], number: int) -> bool:
    """Whether the record is a formula that was tried, with values that can be counted."""
    if not is_candidate(record, number):
        return False
    if type(record["generation"]) is not int or type(record["formula"]) is not str:
        return False
    if "fitness" not in record:
        return True
    values = record["fitness"]
    return (
        type(values) is list
        and len(values) > 0
        and all(type(value) is float and math.isfinite(value) for value in values)
        and type(record.get("complexity")) is int
        and type(record.get("train")) is dict
    )


class JournalTally:
    """Counts of formulas tried, evaluated, rejected by rule and repeated; history; the best."""

    def __init__(self) -> None:
        self.tried = self.evaluated = self.repeats = self.unreadable = 0
        self.rejected: Counter[str] = Counter()
        self.history: list[dict[str, Any]] = []
        self.hall = HallOfFame()
        self._best: Row | None = None
        self._rank: _Rank = (math.inf, 0, 0)
        # The bounds that a formula must pass to enter the full hall of fame.
        self._worst = -math.inf
        self._bounds: list[tuple[int, tuple[float, ...]]] = []

    @property
    def generation(self) -> int | None:
        """The last generation counted; None before the first."""
        return self.history[-1]["generation"] if self.history else None

    def count(self, records: Sequence[Row]) -> None:
        """Count the records that follow those counted before."""
        entering: list[Candidate] = []
        for generation, members in groupby(records, key=lambda record: record["generation"]):
            for record in members:
                self._count(record)
                if "fitness" in record and "key" in record and self._may_enter(record):
                    entering += self._parsed(record)
                if len(entering) >= _TOGETHER:
                    self._admit(entering)
                    entering = []
            self._note_best(generation)
        self._admit(entering)

    def _count(self, record: Row) -> None:
        self.tried += 1
        self.evaluated += "key" in record
        self.repeats += "repeats" in record
        if "rejected" in record:
            self.rejected[str(record["rejected"])] += 1
        if "fitness" in record:
            rank = (-record["fitness"][0], record["complexity"], record["id"])
            if self._best is None or rank < self._rank:
                self._best, self._rank = record, rank

    def _note_best(self, generation: int) -> None:
        """Write or complete the generation's row of the history."""
        if self._best is None:
            return
        row = {
            "generation": generation,
            "evaluated": self.evaluated,
            "rejected": self.rejected.total(),
            "repeats": self.repeats,
            "fitness": self._best["fitness"][0],
            "complexity": self._best["complexity"],
            "best": self._best["id"],
            "formula": self._best["formula"],
        }
        if self.generation == generation:
            self.history[-1] = row
        else:
            self.history.append(row)

    def _may_enter(self, record: Row) -> bool:
        """Whether the formula is not worse than the hall's last, or not dominated."""
        fitness, complexity = record["fitness"], record["complexity"]
        if fitness[0] >= self._worst:
            return True
        return not any(
            simple <= complexity and all(a >= b for a, b in zip(found, fitness, strict=False))
            for simple, found in self._bounds
        )

    def _parsed(self, record: Row) -> list[Candidate]:
        try:
            return [Candidate.from_json(record)]
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
            self.unreadable += 1
            return []

    def _admit(self, entering: Sequence[Candidate]) -> None:
        self.hall = admit(self.hall, entering)
        entries = self.hall.entries
        if len(entries) >= self.hall.size:
            self._worst = best_first(entries)[self.hall.size - 1].fitness[0]
            # Who is dominated by an entry is dominated by one of the front.
            self._bounds = [(entry.complexity, entry.fitness) for entry in self.hall.front]
