"""What a search knows about architectures: scores, values of blocks, targets, latencies.

Each fact is recorded once, in the order in which the loop first asked for it, as a line of the
journal; the target of a training that failed is the reason. A loop is a function of its seed and of
these facts, so a search is resumed by running it again: facts that are in the journal are read from
it instead of being computed.

A time limit ends a search between two facts, never in the middle of one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from lpzero.errors import InputError
from lpzero.runs.journal import Journal
from spaces.base import Space
from spaces.errors import SpaceError

SCORE, BLOCKS, TARGET, LATENCY = "score", "blocks", "target", "latency"
_FIELDS = {"n", "fact", "arch", "value"}
Answers = Callable[[list[Any]], Iterable[Any]]


def is_fact(record: dict[str, Any], number: int) -> bool:
    """Whether the record is valid at that line of the journal."""
    return record.keys() == _FIELDS and record["n"] == number


class TimeUpError(Exception):
    """The time limit is reached; the search's facts so far are all recorded."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """So many seconds from now; with a deadline, facts are computed `at_once` at a time."""

    seconds: float
    at_once: int = 1
    start: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        if not self.seconds > 0:
            raise InputError(f"the time limit is {self.seconds!r}, expected more than 0 seconds")

    def check(self) -> None:
        """Raise TimeUpError if the time is over."""
        if time.monotonic() - self.start >= self.seconds:
            raise TimeUpError


class Ledger:
    """The facts of this search so far, and those that an earlier process recorded."""

    def __init__(
        self,
        space: Space[Any],
        journal: Journal | None = None,
        deadline: Deadline | None = None,
    ) -> None:
        self.space, self._journal, self._deadline = space, journal, deadline
        self._facts: dict[tuple[str, Any], Any] = {}
        self._has_any = False  # a score or a target
        self._recorded = dict(_facts(space, journal.records())) if journal is not None else {}

    def get(self, fact: str, arch: Any) -> Any:
        """The fact's value; None if it is not known."""
        return self._facts.get((fact, arch))

    def archs(self, fact: str) -> list[Any]:
        """The architectures whose fact is known, in the order in which it was asked for."""
        return [arch for kind, arch in self._facts if kind == fact]

    def n_recorded(self, fact: str) -> int:
        """For how many architectures an earlier process recorded the fact."""
        return sum(kind == fact for kind, _ in self._recorded)

    def is_recorded(self, fact: str, arch: Any) -> bool:
        """Whether the fact is known, or an earlier process recorded it."""
        return (fact, arch) in self._facts or (fact, arch) in self._recorded

    def find(self, fact: str, archs: Sequence[Any], compute: Answers) -> list[Any]:
        """The fact of each architecture; `compute` returns the unknown ones, in their order.

        With a deadline a few are computed at a time, and TimeUpError is raised before those that
        would begin after it. The first few of a search are always computed.
        """
        new = [arch for arch in dict.fromkeys(archs) if (fact, arch) not in self._facts]
        for some in self._parts(new):
            missing = [arch for arch in some if (fact, arch) not in self._recorded]
            if missing and self._deadline is not None and self._has_any:
                self._deadline.check()
            answers = iter(compute(missing)) if missing else iter(())
            for arch in some:
                is_recorded = (fact, arch) in self._recorded
                self._add(fact, arch, self._recorded[fact, arch] if is_recorded else next(answers))
        return [self._facts[fact, arch] for arch in archs]

    def _parts(self, archs: list[Any]) -> Iterator[list[Any]]:
        size = len(archs) if self._deadline is None else self._deadline.at_once
        for start in range(0, len(archs), size or 1):
            yield archs[start : start + size]

    def _add(self, fact: str, arch: Any, value: Any) -> None:
        if self._journal is not None:
            line = {"n": self._journal.position, "fact": fact}
            self._journal.append([{**line, "arch": self.space.to_json(arch), "value": value}])
        self._facts[fact, arch] = value
        self._has_any = self._has_any or fact in (SCORE, TARGET)


def _facts(space: Space[Any], records: Sequence[dict[str, Any]]) -> Iterator[tuple[Any, Any]]:
    for record in records:
        try:
            arch = space.from_json(record["arch"])
        except SpaceError:
            return  # not an architecture of this space: the rest is computed again
        yield (record["fact"], arch), record["value"]
