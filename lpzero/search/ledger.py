"""What a search has found out of architectures: scores, values of blocks, targets, latencies.

Each fact is stated once, in the order in which the loop first asked for it, as a line of the
journal. A loop is a function of its seed and of these facts, so a search is resumed by running it
again: what the journal holds already is answered from there instead of being computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from lpzero.runs.journal import Journal
from spaces.base import Space
from spaces.errors import SpaceError

SCORE, BLOCKS, TARGET, LATENCY = "score", "blocks", "target", "latency"
_FIELDS = {"n", "fact", "arch", "value"}
Answers = Callable[[list[Any]], Iterable[Any]]


def is_fact(record: dict[str, Any], number: int) -> bool:
    """Whether the record may stand at that line of the journal."""
    return record.keys() == _FIELDS and record["n"] == number


class Ledger:
    """The facts stated so far, and those that an earlier process wrote down."""

    def __init__(self, space: Space[Any], journal: Journal | None = None) -> None:
        self.space, self._journal = space, journal
        self._stated: dict[tuple[str, Any], Any] = {}
        self._ahead = dict(_facts(space, journal.records())) if journal is not None else {}

    def get(self, fact: str, arch: Any) -> Any:
        """What is known, None if nothing is."""
        return self._stated.get((fact, arch))

    def known(self, fact: str) -> list[Any]:
        """The architectures of which it is known, in the order it was asked for."""
        return [arch for kind, arch in self._stated if kind == fact]

    def find(self, fact: str, archs: Sequence[Any], compute: Answers) -> list[Any]:
        """The fact of each architecture; `compute` gives those nobody knows, in their order."""
        new = [arch for arch in dict.fromkeys(archs) if (fact, arch) not in self._stated]
        missing = [arch for arch in new if (fact, arch) not in self._ahead]
        answers = iter(compute(missing)) if missing else iter(())
        for arch in new:
            known = (fact, arch) in self._ahead
            self._state(fact, arch, self._ahead[fact, arch] if known else next(answers))
        return [self._stated[fact, arch] for arch in archs]

    def _state(self, fact: str, arch: Any, value: Any) -> None:
        if self._journal is not None:
            line = {"n": self._journal.position, "fact": fact}
            self._journal.append([{**line, "arch": self.space.to_json(arch), "value": value}])
        self._stated[fact, arch] = value


def _facts(space: Space[Any], records: Sequence[dict[str, Any]]) -> Iterator[tuple[Any, Any]]:
    for record in records:
        try:
            arch = space.from_json(record["arch"])
        except SpaceError:
            return  # not ours: from here on everything is found out anew
        yield (record["fact"], arch), record["value"]
