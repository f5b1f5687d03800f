"""The result of a campaign: chosen on train and valid, judged on test, with the counters.

The report is the only step that reads the test rows, after the search has ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.discover.campaign import CampaignOutcome
from lpzero.discover.campaign_columns import NetworkRivals
from lpzero.discover.candidate import Candidate
from lpzero.discover.objective import MEMBERS, Objective, order_of, rank_mean
from lpzero.errors import LPZeroError
from lpzero.judgement.correlation import agreement
from lpzero.judgement.rivals import Contest, Count, MeasureStability, contest_fields, rival_lines
from lpzero.judgement.table import TableJudge
from lpzero.runs.formula_run import column, sheet
from lpzero.scores.columns import RANK_OF
from lpzero.scores.formula_rivals import formula_rivals
from primitives.canonical import canonical
from primitives.errors import Rejected
from primitives.parser import parse

if TYPE_CHECKING:
    from spaces.tables import ColumnTable, Table

TOP = 10


def report(
    tables: Sequence[Table | ColumnTable],
    objective: Objective,
    outcome: CampaignOutcome,
    counts: Mapping[str, Count] | None = None,
    stability: MeasureStability | None = None,
) -> dict[str, Any]:
    """The result as JSON values; `tables` must include their test targets.

    `counts` are the best counts by table, found on the rows that the winner was chosen on; without
    them the winner is compared with the best counter alone. `stability` measures the winner's.
    """
    opened = _opened(tables, objective)
    chosen = choose(objective, outcome)
    found: dict[int, _ScoredCandidate] = {}
    for candidate in (*chosen[:1], *outcome.hall.entries):
        if len(found) < TOP and candidate.id not in found:
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
        **_with_ranks(contest_fields(winner.contests(counts or {}, stability)), winner),
        "ensemble": _ensemble(chosen, objective, opened),
        "passed_over": _passed_over(objective, outcome, winner.candidate),
        "generations": outcome.state.generation - 1,
        "tried": outcome.tally.tried,
        "evaluated": outcome.tally.evaluated,
        "repeats": outcome.tally.repeats,
        "rejected": dict(sorted(outcome.tally.rejected.items())),
        "stopped": outcome.stopped,
    }


def _with_ranks(fields: dict[str, Any], winner: _ScoredCandidate) -> dict[str, Any]:
    """The fields; the verdict says so if the winner combines ranks."""
    if not any(name.startswith(RANK_OF) for name in winner.candidate.formula.columns):
        return fields
    told = "It is a rank-combined proxy: its columns stand for ranks among the rows of the table."
    return fields | {"verdict": f"{fields['verdict']} {told}"}


def scores(
    tables: Sequence[Table | ColumnTable],
    objective: Objective,
    result: dict[str, Any],
    others: NetworkRivals | None = None,
) -> dict[str, Any]:
    """The winner's score and the target of every row, as JSON values, for figures.

    `others` gives rivals beside the counters, the best count and the published formulas.
    """
    text = result["best"]["formula"]
    columns = {}
    for judged, fitness in zip(_opened(tables, objective), objective.tables_fitness, strict=True):
        values = fitness.values.score(parse(text))
        assert not isinstance(values, Rejected), "the winner has a score on every row"
        name = judged.table.name
        rivals = []
        if judged.table.space is not None:
            rivals = formula_rivals(fitness.values.table, _count(result, name), fitness.workers)
        rivals += [] if others is None else others.of(judged)
        lines = rival_lines(judged, values, rivals)
        columns[name] = column(judged.table, judged.parts, values, lines)
    return sheet(text, columns)


def _count(result: dict[str, Any], table: str) -> str | None:
    """The formula of the best count on a table, if the result has one."""
    found = result.get("count") or {}
    text = found.get("formula") or found.get("formula_by_table", {}).get(table)
    return None if text is None else str(text)


def choose(objective: Objective, outcome: CampaignOutcome) -> list[Candidate]:
    """The candidates that may win, the winner first: by fitness, by valid rows, or by `choice`."""
    if objective.settings.choose == "train":
        return list(outcome.hall.entries)
    if objective.settings.choose == "stable":
        return choose_stable(objective, {*outcome.hall.entries, *outcome.state.population})
    return sorted(outcome.hall.front, key=lambda c: (-objective.valid(c), c.complexity, c.id))


def choose_stable(objective: Objective, candidates: Iterable[Candidate]) -> list[Candidate]:
    """The candidates whose scores repeat, by rho on train and valid; of several tables by one
    number of them, as `--across` has it."""
    pool = _pool(candidates)
    rhos, stability = _known(objective, pool)
    complexity = [candidate.complexity for candidate in pool]
    value = objective.across_known.value(rhos)
    order = order_of(value, stability, complexity, objective.settings.stable)
    return [pool[i] for i in order]


def passed_over(
    objective: Objective, candidates: Iterable[Candidate], chosen: Candidate
) -> dict[str, Any] | None:
    """The formula with the best rho on train and valid, lowest over the tables, as JSON values.

    None if it is no better than the one that was chosen. It was passed over because its scores do
    not repeat.
    """
    pool = _pool(candidates)
    rhos, stability = _known(objective, pool)
    lowest = rhos.min(axis=0)
    best, own = int(np.argmax(lowest)), [candidate.id for candidate in pool].index(chosen.id)
    if stability is None or lowest[best] <= lowest[own]:
        return None
    return {
        "formula": str(canonical(pool[best].formula)),
        "rho": float(lowest[best]),
        "rho_chosen": float(lowest[own]),
        "stability": float(stability[best]),
    }


def _passed_over(
    objective: Objective, outcome: CampaignOutcome, winner: Candidate
) -> dict[str, Any] | None:
    if objective.settings.choose != "stable":
        return None
    return passed_over(objective, {*outcome.hall.entries, *outcome.state.population}, winner)


def _pool(candidates: Iterable[Candidate]) -> list[Candidate]:
    return sorted((c for c in candidates if c.is_scored), key=lambda c: c.id)


def _known(objective: Objective, pool: Sequence[Candidate]) -> tuple[FloatArray, FloatArray | None]:
    """Rho on train and valid of each table (tables, K), and the lowest stability (K,)."""
    formulas = [canonical(candidate.formula) for candidate in pool]
    rhos, agreements = [], []
    for fitness in objective.tables_fitness:
        scores = fitness.values.scores(formulas)
        rhos.append(fitness.train_valid_rho(scores))
        if fitness.second_seed is not None:
            agreements.append(agreement(scores, fitness.second_seed.scores(formulas)))
    return np.stack(rhos), np.min(agreements, axis=0) if agreements else None


def _ensemble(
    chosen: Sequence[Candidate], objective: Objective, opened: Sequence[TableJudge]
) -> dict[str, Any] | None:
    """The rank mean of the best that may win, judged as the winner is; None for fewer than two."""
    if objective.settings.choose != "stable":
        return None
    formulas = [canonical(candidate.formula) for candidate in chosen[:MEMBERS]]
    scores = [fitness.values.scores(formulas) for fitness in objective.tables_fitness]
    usable = np.flatnonzero(np.all([np.isfinite(of).all(axis=1) for of in scores], axis=0))
    if len(usable) < 2:
        return None
    judged = {
        table.table.name: table.judge_chosen(rank_mean(of[usable]))
        for table, of in zip(opened, scores, strict=True)
    }
    return {"members": [str(formulas[i]) for i in usable], "judged": judged}


@dataclass(frozen=True, eq=False)
class _ScoredCandidate:
    """A candidate with its scores (n,) on every table."""

    candidate: Candidate
    scores: Sequence[tuple[TableJudge, FloatArray]]

    def line(self) -> dict[str, Any]:
        """Its entry in the result: the formula, rho on each part (lowest table), test judgement."""
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
        """Its judgements on the named parts of each table, or on all parts if none is named."""
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


def _opened(tables: Sequence[Table | ColumnTable], objective: Objective) -> list[TableJudge]:
    pairs = zip(tables, objective.tables_fitness, strict=True)
    return [
        TableJudge(table, fitness.parts, with_test=True, columns=fitness.columns.values)
        for table, fitness in pairs
    ]


def _score(
    candidate: Candidate, objective: Objective, opened: Sequence[TableJudge]
) -> _ScoredCandidate | None:
    """The candidate with its scores on all rows; None if a table rejects it."""
    found = []
    for judged, fitness in zip(opened, objective.tables_fitness, strict=True):
        scores = fitness.values.score(canonical(candidate.formula))
        if isinstance(scores, Rejected):
            return None
        found.append((judged, scores))
    return _ScoredCandidate(candidate, found)
