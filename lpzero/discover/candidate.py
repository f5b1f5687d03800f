"""A candidate: a formula with its lineage and the result of its evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lpzero.judgement.measures import MEASURES, Measures
from primitives.canonical import canonical
from primitives.formula import Formula
from primitives.parser import parse
from primitives.rejection import Rejected


@dataclass(frozen=True, slots=True)
class Verdict:
    """The fitted sign, the measures on each table with that sign, and the resulting fitness."""

    sign: int
    measures: tuple[Measures, ...]
    fitness: tuple[float, ...]


class Judge(Protocol):
    """Evaluates formulas."""

    def __call__(self, formulas: Sequence[Formula]) -> list[Verdict | Rejected]: ...


@dataclass(frozen=True, slots=True)
class Candidate:
    """A formula as variation produced it, with the fitted sign once it has been evaluated.

    It was evaluated (`fitness`), `rejected` by a rule, or it `repeats` an earlier candidate, whose
    id is given. `key` is the canonical form without its sign, set only on the first candidate that
    has it; `complexity` counts the nodes of that form.
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
        """Whether it has a fitness."""
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
            parse(line["formula"]),
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
        """The judge's verdict, as the journal has it."""
        if self.rejected is not None:
            return Rejected(self.rejected, "as recorded in the journal")
        if self.key == str(canonical(self.formula)):  # evaluated with its own sign
            return Verdict(1, self.measures, self.fitness)
        plain = self.formula.with_sign(1)
        # The judge evaluated the key, which may be the formula with the opposite sign.
        is_key = self.key == str(plain)
        sign = self.formula.sign if is_key else canonical(self.formula).sign
        return Verdict(sign, self.measures, self.fitness)
