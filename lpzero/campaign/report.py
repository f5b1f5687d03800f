"""What a campaign found: chosen on train and valid, judged on test, counters beside it.

Reading this opens the test rows, once, after the search is over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lpzero import counters
from lpzero.campaign.bench import Bench
from lpzero.campaign.ground import Ground
from lpzero.campaign.running import Outcome
from lpzero.correlation import spearman
from lpzero.errors import LPZeroError
from lpzero.evolve import Candidate
from lpzero.fitness import judge
from lpzero.ranks import FloatArray
from lpzero.scoresheet import column, sheet
from primitives.canonical import canonical
from primitives.parsing import parse
from primitives.rejection import Rejected

if TYPE_CHECKING:
    from spaces.tables import Table

TOP = 10


def report(
    tables: Sequence[Table], bench: Bench, outcome: Outcome, top: int = TOP
) -> dict[str, Any]:
    """The result as JSON values; `tables` have their test targets."""
    places = [_Place(table, ground) for table, ground in zip(tables, bench.grounds, strict=True)]
    found: dict[int, tuple[Candidate, dict[str, Any]]] = {}
    for candidate in (choose(bench, outcome), *outcome.hall.entries):
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
        "method": bench.settings.method,
        "objectives": list(bench.settings.objectives),
        "chosen_on": bench.settings.choose,
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


def scores(tables: Sequence[Table], bench: Bench, result: dict[str, Any]) -> dict[str, Any]:
    """The winner's score and the target of every row, as JSON values: what a figure needs."""
    text = result["best"]["formula"]
    columns = {}
    for table, ground in zip(tables, bench.grounds, strict=True):
        values = ground.everywhere.score(parse(text))
        assert not isinstance(values, Rejected), "the winner has scores everywhere"
        columns[table.name] = column(table, _Place(table, ground).parts, values)
    return sheet(text, columns)


def choose(bench: Bench, outcome: Outcome) -> Candidate:
    """The winner: best on train, or the member of the train front that is best on valid."""
    if bench.settings.choose == "train":
        return outcome.hall.entries[0]
    return max(outcome.hall.front, key=lambda c: (bench.valid(c), -c.complexity, -c.id))


class _Place:
    """A table with its three parts open."""

    def __init__(self, table: Table, ground: Ground) -> None:
        self.table, self.ground = table, ground
        parts = ground.parts
        self.parts = {"train": parts.train, "valid": parts.valid, "test": parts.open_test()}

    def summary(self) -> dict[str, Any]:
        return {
            "name": self.table.name,
            "space": self.table.space.name,
            "target": self.table.target,
            "licence": self.table.licence,
            "ceiling": self.table.ceiling,
            "n": {part: len(rows) for part, rows in self.parts.items()},
            "n_fitness": len(self.ground.rows),
            "split_seed": self.ground.parts.seed,
        }

    def scores(self, candidate: Candidate) -> FloatArray | None:
        """The candidate's scores on all rows, if it has them everywhere."""
        found = self.ground.everywhere.score(canonical(candidate.formula))
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
