"""A candidate: the text of a formula with its lineage and the result of its evaluation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from lpzero.judgement.measures import Measures
from primitives.errors import Rejected
from primitives.formula import Formula
from primitives.parser import parse

REFITTED = "refitted"  # the operator of a winner that no generation made
_FIELDS = {"id", "generation", "operator", "parents", "formula"}


class Verdict(NamedTuple):
    """The fitted sign, the measures on each table with that sign, and the resulting fitness."""

    sign: int
    measures: tuple[Measures, ...]
    fitness: tuple[float, ...]


Judge = Callable[[Sequence[Formula]], list[Verdict | Rejected]]  # evaluates formulas


class Candidate(NamedTuple):
    """The text of a formula as variation produced it, with the fitted sign once evaluated.

    It was evaluated (`fitness`), `rejected` by a rule, or it `repeats` an earlier candidate, whose
    id is given. `key` is the canonical form without its sign, set only on the first candidate that
    has it; `complexity` counts the nodes of that form. The text is parsed only where the formula is
    needed: a journal has hundreds of thousands of lines.
    """

    id: int
    generation: int
    operator: str
    parents: tuple[int, ...]
    text: str
    key: str | None = None
    complexity: int = 0
    rejected: str | None = None
    repeats: int | None = None
    measures: tuple[Measures, ...] = ()
    fitness: tuple[float, ...] = ()

    @property
    def formula(self) -> Formula:
        """The formula that the text spells."""
        return parse(self.text)

    @classmethod
    def refitted(
        cls, place: int, formula: Formula, measures: Sequence[Measures], fitness: float
    ) -> Candidate:
        """The formula that a level's search finds on train and valid, at that place of its best.

        It is not a line of the journal, which holds what a search on train alone has tried and a
        resumed campaign replays: no generation may know a formula that was fitted to the valid
        rows. Its id is below 0, and a result has none for it.
        """
        text = str(formula)
        complexity = formula.complexity
        return cls(-1 - place, 0, REFITTED, (), text, text, complexity)._replace(
            measures=tuple(measures), fitness=(fitness,)
        )

    @property
    def is_in_journal(self) -> bool:
        """Whether the journal has a line of it."""
        return self.id >= 0

    @property
    def is_scored(self) -> bool:
        """Whether it has a fitness."""
        return bool(self.fitness)

    def to_json(self, tables: Sequence[str]) -> dict[str, Any]:
        """One line of a journal."""
        line: dict[str, Any] = {
            "id": self.id,
            "generation": self.generation,
            "operator": self.operator,
            "parents": list(self.parents),
            "formula": self.text,
        }
        if self.key is not None:
            line |= {"key": self.key, "complexity": self.complexity}
        if self.rejected is not None:
            line["rejected"] = self.rejected
        if self.repeats is not None:
            line["repeats"] = self.repeats
        if self.fitness:
            line["fitness"] = list(self.fitness)
            line["train"] = {
                table: measures._asdict()
                for table, measures in zip(tables, self.measures, strict=True)
            }
        return line

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> Candidate:
        """The candidate of a journal's line that `is_candidate` accepts."""
        get = line.get
        return cls(
            line["id"],
            line["generation"],
            line["operator"],
            tuple(line["parents"]),
            line["formula"],
            get("key"),
            get("complexity", 0),
            get("rejected"),
            get("repeats"),
            tuple([Measures(**measures) for measures in line["train"].values()])
            if "fitness" in line
            else (),
            tuple(get("fitness", ())),
        )


def is_candidate(record: dict[str, Any], number: int) -> bool:
    """Whether the record is a candidate that can stand at that line of a campaign's journal."""
    if record.get("id") != number or not record.keys() >= _FIELDS:
        return False
    if type(record["generation"]) is not int or type(record["formula"]) is not str:
        return False
    if "fitness" not in record:
        return True
    values, train = record["fitness"], record.get("train")
    return (
        type(values) is list
        and len(values) > 0
        and all(type(value) is float and math.isfinite(value) for value in values)
        and type(record.get("complexity")) is int
        and type(train) is dict
        and all(measures.keys() == _MEASURES for measures in train.values())
    )


_MEASURES = set(Measures._fields)


def order(candidate: Candidate) -> tuple[float, int, int]:
    """What candidates are sorted by: the first objective; the simpler, then the older is better."""
    return -candidate.fitness[0], candidate.complexity, candidate.id


def best_first(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The candidates in their order."""
    return sorted(candidates, key=order)
