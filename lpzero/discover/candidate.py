"""A candidate: a formula with where it came from and what became of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lpzero.judgement.measures import MEASURES, Measures
from primitives.canonical import canonical
from primitives.formula import Formula
from primitives.parser import parse_paper_formula
from primitives.rejection import Rejected


@dataclass(frozen=True, slots=True)
class Verdict:
    """The fitted sign, the measures on each table with that sign, and the fitness made of them."""

    sign: int
    measures: tuple[Measures, ...]
    fitness: tuple[float, ...]


class Judge(Protocol):
    """Says how good formulas are."""

    def __call__(self, formulas: Sequence[Formula]) -> list[Verdict | Rejected]: ...


@dataclass(frozen=True, slots=True)
class Candidate:
    """`formula` as variation made it, with the sign that fits once it is known.

    It was evaluated (`fitness`), `rejected` by a rule, or it `repeats` an earlier candidate.
    `key` names its score up to sign where it was the first to have it; `complexity` counts the
    nodes of that canonical form.
    """

    id: int
    generation: int
    operator: str
    parents: tuple[int, ...]
    formula: Formula
    key: str | None = None
    complexity: int = 0
    rejected: str | None = None
    repeats: int | None = None
    measures: tuple[Measures, ...] = ()
    fitness: tuple[float, ...] = ()

    @property
    def is_scored(self) -> bool:
        """Whether there is a fitness."""
        return bool(self.fitness)

    def to_json(self, tables: Sequence[str]) -> dict[str, Any]:
        """One line of a journal."""
        line: dict[str, Any] = {
            "id": self.id,
            "generation": self.generation,
            "operator": self.operator,
            "parents": list(self.parents),
            "formula": str(self.formula),
        }
        if self.key is not None:
            line |= {"key": self.key, "complexity": self.complexity}
        if self.rejected is not None:
            line["rejected"] = self.rejected
        if self.repeats is not None:
            line["repeats"] = self.repeats
        if self.is_scored:
            line["fitness"] = list(self.fitness)
            line["train"] = {
                table: found._asdict() for table, found in zip(tables, self.measures, strict=True)
            }
        return line

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> Candidate:
        """The candidate of a journal's line."""
        return cls(
            int(line["id"]),
            int(line["generation"]),
            str(line["operator"]),
            tuple(int(parent) for parent in line["parents"]),
            parse_paper_formula(line["formula"]),
            line.get("key"),
            int(line.get("complexity", 0)),
            line.get("rejected"),
            line.get("repeats"),
            tuple(
                Measures(*(float(found[name]) for name in MEASURES))
                for found in line.get("train", {}).values()
            ),
            tuple(float(value) for value in line.get("fitness", ())),
        )

    def verdict(self) -> Verdict | Rejected:
        """What the judge said of it."""
        if self.rejected is not None:
            return Rejected(self.rejected, "as the journal says")
        plain = Formula(self.formula.expression, self.formula.reduction)
        # The judge saw the key, which may be the formula with its sign turned.
        is_key = self.key == str(plain)
        sign = self.formula.sign if is_key else canonical(self.formula).sign
        return Verdict(sign, self.measures, self.fitness)
