"""What a campaign found: chosen on train and valid, judged on test, counters beside it.

Reading this opens the test rows, once, after the search is over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lpzero.arrays import FloatArray
from lpzero.discover.campaign import CampaignOutcome
from lpzero.discover.candidate import Candidate
from lpzero.discover.objective import Objective
from lpzero.errors import LPZeroError
from lpzero.judgement.rivals import Contest, Count, MeasureStability, contest_fields
from lpzero.judgement.table import JudgedTable
from lpzero.runs.scoresheet import column, sheet
from primitives.canonical import canonical
from primitives.parser import parse_paper_formula
from primitives.rejection import Rejected

if TYPE_CHECKING:
    from spaces.tables import Table

TOP = 10


def report(
    tables: Sequence[Table],
    objective: Objective,
    outcome: CampaignOutcome,
    top: int = TOP,
    counts: Mapping[str, Count] | None = None,
    stability: MeasureStability | None = None,
) -> dict[str, Any]:
    """The result as JSON values; `tables` have their test targets.

    `counts` are the best counts by table, found on the rows of the fitness; without them the
    winner is compared with the best counter alone. `stability` measures the winner's.
    """
    opened = _opened(tables, objective)
    found: dict[int, _Scored] = {}
    for candidate in (choose(objective, outcome), *outcome.hall.entries):
        if len(found) < top and candidate.id not in found:
            scored = _score(candidate, objective, opened)
            if scored is not None:
                found[candidate.id] = scored
    if not found:
        raise LPZeroError("none of the best formulas has finite scores on every architecture")
    lines = [scored.line() for scored in found.values()]
    # The first is the chosen candidate, unless it has no finite scores on the test rows.
    winner = next(iter(found.values()))
    best = {**lines[0], "judged": winner.judged()}
    lines.sort(key=lambda line: -line["fitness"][0])
    front = {c.id for c in outcome.hall.front}
    return {
        "tables": [
            {"name": judged.table.name, **judged.facts, "n_fitness": len(fitness.rows)}
            for judged, fitness in zip(opened, objective.tables_fitness, strict=True)
        ],
        "method": objective.settings.method,
        "objectives": list(objective.settings.objectives),
        "chosen_on": objective.settings.choose,
        "best": best,
        "top": [{**line, "front": line["id"] in front} for line in lines],
        "counters": [line for judged in opened for line in judged.counters()],
        **contest_fields(winner.contests(counts or {}, stability)),
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
    for judged, fitness in zip(_opened(tables, objective), objective.tables_fitness, strict=True):
        values = fitness.everywhere.score(parse_paper_formula(text))
        assert not isinstance(values, Rejected), "the winner has scores everywhere"
        columns[judged.table.name] = column(judged.table, judged.parts, values)
    return sheet(text, columns)


def choose(objective: Objective, outcome: CampaignOutcome) -> Candidate:
    """The winner: best on train, or the member of the train front that is best on valid."""
    if objective.settings.choose == "train":
        return outcome.hall.entries[0]
    return max(outcome.hall.front, key=lambda c: (objective.valid(c), -c.complexity, -c.id))


@dataclass(frozen=True, eq=False)
class _Scored:
    """A candidate with its scores (n,) on every table."""

    candidate: Candidate
    scores: Sequence[tuple[JudgedTable, FloatArray]]

    def line(self) -> dict[str, Any]:
        """Its formula with the rho on each part, lowest over the tables, and its test judgement."""
        rhos = {judged.table.name: judged.rhos(scores) for judged, scores in self.scores}
        formula = canonical(self.candidate.formula)
        parts = next(iter(rhos.values()))
        line = {
            "formula": str(formula),
            "rho": {part: min(found[part] for found in rhos.values()) for part in parts},
            "complexity": self.candidate.complexity,
            "sign": formula.sign,
            "fitness": list(self.candidate.fitness),
            "id": self.candidate.id,
            "generation": self.candidate.generation,
            "judged": self.judged("test"),
        }
        return line if len(rhos) == 1 else {**line, "rho_by_table": rhos}

    def judged(self, *parts: str) -> dict[str, Any]:
        """Its judgements on the parts of each table, on all of them if none is named."""
        return {
            judged.table.name: judged.judge_chosen(scores, *parts) for judged, scores in self.scores
        }

    def contests(
        self, counts: Mapping[str, Count], measure: MeasureStability | None
    ) -> list[Contest]:
        """It against its rivals on every table."""
        formula = canonical(self.candidate.formula)
        return [
            Contest(
                judged,
                scores,
                counts.get(judged.table.name),
                None if measure is None else measure(formula, judged.table),
            )
            for judged, scores in self.scores
        ]


def _opened(tables: Sequence[Table], objective: Objective) -> list[JudgedTable]:
    pairs = zip(tables, objective.tables_fitness, strict=True)
    return [JudgedTable(table, fitness.parts, with_test=True) for table, fitness in pairs]


def _score(
    candidate: Candidate, objective: Objective, opened: Sequence[JudgedTable]
) -> _Scored | None:
    """The candidate with its scores on all rows; None if it lacks one somewhere."""
    found = []
    for judged, fitness in zip(opened, objective.tables_fitness, strict=True):
        scores = fitness.everywhere.score(canonical(candidate.formula))
        if isinstance(scores, Rejected):
            return None
        found.append((judged, scores))
    return _Scored(candidate, found)
