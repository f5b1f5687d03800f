"""What a campaign found: chosen on train and valid, judged on test, counters beside it.

Reading this opens the test rows, once, after the search is over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.discover.campaign import CampaignOutcome
from lpzero.discover.candidate import Candidate
from lpzero.discover.objective import Objective
from lpzero.discover.table_fitness import TableFitness
from lpzero.errors import LPZeroError
from lpzero.judgement import counters
from lpzero.judgement.correlation import spearman
from lpzero.judgement.judgement import judge
from lpzero.runs.scoresheet import column, sheet
from primitives.canonical import canonical
from primitives.parser import parse
from primitives.rejection import Rejected

if TYPE_CHECKING:
    from spaces.tables import Table

TOP = 10


def report(
    tables: Sequence[Table], objective: Objective, outcome: CampaignOutcome, top: int = TOP
) -> dict[str, Any]:
    """The result as JSON values; `tables` have their test targets."""
    places = [
        _Place(table, fitness)
        for table, fitness in zip(tables, objective.tables_fitness, strict=True)
    ]
    found: dict[int, tuple[Candidate, dict[str, Any]]] = {}
    for candidate in (choose(objective, outcome), *outcome.hall.entries):
        if len(found) < top and candidate.id not in found:
            line = _line(places, candidate)
            if line is not None:
                found[candidate.id] = candidate, line
    if not found:
        raise LPZeroError("none of the best formulas has finite scores on every architecture")
    winner, best = next(iter(found.values()))  # the chosen one, unless it is not finite on test
    best = {**best, "judged": {place.table.name: place.judged(winner) for place in places}}
    lines = sorted((line for _, line in found.values()), key=lambda line: -line["fitness"][0])
    front = {c.id for c in outcome.hall.front}
    return {
        "tables": [place.summary() for place in places],
        "method": objective.settings.method,
        "objectives": list(objective.settings.objectives),
        "chosen_on": objective.settings.choose,
        "best": best,
        "top": [{**line, "front": line["id"] in front} for line in lines],
        "counters": [line for place in places for line in place.counters()],
        "generations": outcome.state.generation - 1,
        "tried": outcome.tally.tried,
        "evaluated": outcome.tally.evaluated,
        "repeats": outcome.tally.repeats,
        "rejected": dict(sorted(outcome.tally.rejected.items())),
        "stopped": outcome.stopped,
    }


def scores(tables: Sequence[Table], objective: Objective, result: dict[str, Any]) -> dict[str, Any]:
    """The winner's score and the target of every row, as JSON values: what a figure needs."""
    text = result["best"]["formula"]
    columns = {}
    for table, fitness in zip(tables, objective.tables_fitness, strict=True):
        values = fitness.everywhere.score(parse(text))
        assert not isinstance(values, Rejected), "the winner has scores everywhere"
        columns[table.name] = column(table, _Place(table, fitness).parts, values)
    return sheet(text, columns)


def choose(objective: Objective, outcome: CampaignOutcome) -> Candidate:
    """The winner: best on train, or the member of the train front that is best on valid."""
    if objective.settings.choose == "train":
        return outcome.hall.entries[0]
    return max(outcome.hall.front, key=lambda c: (objective.valid(c), -c.complexity, -c.id))


class _Place:
    """A table with its three parts open."""

    def __init__(self, table: Table, fitness: TableFitness) -> None:
        self.table, self.fitness = table, fitness
        parts = fitness.parts
        self.parts = {"train": parts.train, "valid": parts.valid, "test": parts.open_test()}

    def summary(self) -> dict[str, Any]:
        return {
            "name": self.table.name,
            "space": self.table.space.name,
            "target": self.table.target,
            "licence": self.table.licence,
            "ceiling": self.table.ceiling,
            "n": {part: len(rows) for part, rows in self.parts.items()},
            "n_fitness": len(self.fitness.rows),
            "split_seed": self.fitness.parts.seed,
        }

    def scores(self, candidate: Candidate) -> FloatArray | None:
        """The candidate's scores on all rows, if it has them everywhere."""
        found = self.fitness.everywhere.score(canonical(candidate.formula))
        return None if isinstance(found, Rejected) else found

    def rhos(self, scores: FloatArray) -> dict[str, float]:
        return {
            part: spearman(scores[rows], self.table.targets[rows])
            for part, rows in self.parts.items()
        }

    def judged(self, candidate: Candidate) -> dict[str, Any]:
        """Everything a result must show, for each part and, in sample, for all rows."""
        scores = self.scores(candidate)
        assert scores is not None, "a line was made of it"
        found = self._judge_parts(scores)
        return {part: {**line, "in_sample": part != "test"} for part, line in found.items()}

    def on_test(self, scores: FloatArray) -> dict[str, Any]:
        """The judgement on the test rows alone, in the form of `judged`."""
        return {"test": {**self._judge(scores, self.parts["test"]), "in_sample": False}}

    def counters(self) -> list[dict[str, Any]]:
        """The sizes, judged as the winner is."""
        lines = []
        for name in counters.names():
            scores = counters.score(name, self.table)
            lines.append(
                {
                    "proxy": name,
                    "table": self.table.name,
                    "rho": self.rhos(scores),
                    "judged": self._judge_parts(scores),
                }
            )
        return lines

    def _judge_parts(self, scores: FloatArray) -> dict[str, dict[str, Any]]:
        parts = {**self.parts, "all": np.arange(len(self.table))}
        return {part: self._judge(scores, rows) for part, rows in parts.items()}

    def _judge(self, scores: FloatArray, rows: Any) -> dict[str, Any]:
        return judge(
            scores[rows],
            self.table.targets[rows],
            parameters=counters.score("parameters", self.table)[rows],
            groups=self.table.groups("depth-width")[rows],
        ).to_json()


def _line(places: Sequence[_Place], candidate: Candidate) -> dict[str, Any] | None:
    """A formula with its rho on each part, the lowest over the tables and on each, and its test."""
    rhos, judged = {}, {}
    for place in places:
        scores = place.scores(candidate)
        if scores is None:
            return None
        rhos[place.table.name] = place.rhos(scores)
        judged[place.table.name] = place.on_test(scores)
    formula = canonical(candidate.formula)
    lowest = {part: min(found[part] for found in rhos.values()) for part in places[0].parts}
    line = {
        "formula": str(formula),
        "rho": lowest,
        "complexity": candidate.complexity,
        "sign": formula.sign,
        "fitness": list(candidate.fitness),
        "id": candidate.id,
        "generation": candidate.generation,
        "judged": judged,
    }
    return line if len(places) == 1 else {**line, "rho_by_table": rhos}
