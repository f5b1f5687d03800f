"""The result of a campaign: chosen on train and valid, judged on test, with the counters.

The report is the only step that reads the test rows, after the search has ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.discover.campaign import CampaignOutcome
from lpzero.discover.campaign_columns import NetworkRivals
from lpzero.discover.candidate import Candidate, best_first
from lpzero.discover.levels import influence, standard_error
from lpzero.discover.objective import Objective, order_of, rank_mean
from lpzero.discover.settings import NESTED
from lpzero.discover.shared_levels import MEMBERS, SharedChoice, SharedLevel
from lpzero.discover.table_fitness import TableFitness
from lpzero.errors import LPZeroError
from lpzero.judgement import counters
from lpzero.judgement.correlation import agreement
from lpzero.judgement.measures import MEASURES, RHO, Measures
from lpzero.judgement.rivals import (
    Contest,
    Count,
    MeasureStability,
    Rival,
    contest_fields,
    rival_lines,
)
from lpzero.judgement.table import TableJudge
from lpzero.runs.formula_run import column, sheet
from lpzero.scores.columns import RANK_OF
from lpzero.scores.formula_rivals import formula_rivals
from primitives.formula import Formula
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
    choice = choose(objective, outcome)
    top: dict[int, _ScoredCandidate] = {}
    for candidate in (*choice.candidates[:1], *outcome.hall.entries):
        if len(top) < TOP and candidate.id not in top:
            scored = _score(candidate, objective, opened)
            if scored is not None:
                top[candidate.id] = scored
    if not top:
        raise LPZeroError("none of the best formulas has finite scores on every architecture")
    lines = [scored.line() for scored in top.values()]
    # The first is the chosen candidate, unless it has no finite scores on the test rows.
    winner = next(iter(top.values()))
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
        "chosen_on": objective.rule,
        "levels": _levels(objective, choice.evolved, winner),
        "best": best,
        "top": [{**line, "front": line["id"] in front} for line in lines],
        "counters": [line for judged in opened for line in judged.counters()],
        **_with_ranks(contest_fields(winner.contests(counts or {}, stability)), winner),
        "ensemble": _ensemble(choice.candidates, objective, opened),
        "passed_over": _passed_over(objective, outcome, winner.candidate),
        "generations": outcome.state.generation - 1,
        "tried": outcome.tally.tried,
        "evaluated": outcome.tally.evaluated,
        "repeats": outcome.tally.repeats,
        "rejected": dict(sorted(outcome.tally.rejected.items())),
        "stopped": outcome.stopped,
    }


def _levels(
    objective: Objective, evolved: Evolved | None, winner: _ScoredCandidate
) -> dict[str, Any] | None:
    """The levels with their cross-validated rhos, and what the choice makes one expect."""
    if objective.rule != NESTED:
        return None
    tables, choice = objective.tables_fitness, objective.level_choice
    fits = [
        float(fitness.train_valid_rho(scores[np.newaxis])[0])
        for fitness, (_, scores) in zip(tables, winner.scores, strict=True)
    ]
    found = {
        "lines": [line.to_json() for line in choice.lines],
        "chosen": choice.chosen,
        "evolved": None if evolved is None else evolved.to_json(objective),
        "n_seeds": len(tables[0].seeds),
        "expected": choice.expectation(float(np.mean(fits))),
    }
    if isinstance(choice, SharedChoice):
        found["tables_left_out"] = [
            _left_out(tables, choice, place) for place in range(len(tables))
        ]
    return found


def _left_out(tables: Sequence[TableFitness], choice: SharedChoice, place: int) -> dict[str, Any]:
    """What was found without the table of that place, and its rho on train and valid of all."""
    rhos = {
        fitness.table.name: float(fitness.train_valid_rho(scores[np.newaxis])[0])
        for fitness, scores in zip(tables, choice.scores(place), strict=True)
    }
    left_out = tables[place]
    return {
        "table": left_out.table.name,
        "formula": str(choice.level.formula(choice.left_out[place])),
        "rho": rhos[left_out.table.name],
        "rho_by_table": rhos,
        **left_out.best_counter(),
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
    supervised: Sequence[Rival] = (),
) -> dict[str, Any]:
    """The winner's score and the target of every row, as JSON values, for figures.

    `others` gives rivals beside the counters, the best count and the published formulas, and
    `supervised` are those fitted to the targets of the only table.
    """
    text = result["best"]["formula"]
    columns = {}
    for judged, fitness in zip(_opened(tables, objective), objective.tables_fitness, strict=True):
        values = objective.scores([parse(text)], fitness)[0]
        name = judged.table.name
        rivals = []
        if judged.table.space is not None:
            counted = counters.factors(judged.table)
            count = _count(result, name)
            rivals = formula_rivals(fitness.values.table, count, counted, fitness.workers)
        rivals += [] if others is None else others.of(judged)
        rivals += supervised
        lines = rival_lines(judged, values, rivals)
        columns[name] = column(judged.table, judged.parts, values, lines)
    return sheet(text, columns)


def _count(result: dict[str, Any], table: str) -> str | None:
    """The formula of the best count on a table, if the result has one."""
    found = result.get("count") or {}
    text = found.get("formula") or found.get("formula_by_table", {}).get(table)
    return None if text is None else str(text)


class Choice(NamedTuple):
    """The candidates that may win, the winner first; with levels also evolution's best in one."""

    candidates: list[Candidate]
    evolved: Evolved | None = None


def choose(objective: Objective, outcome: CampaignOutcome) -> Choice:
    """The candidates that may win: by fitness, by valid rows, or by the rule of `--choose`."""
    if objective.rule == "train":
        return Choice(list(outcome.hall.entries))
    everyone = {*outcome.hall.entries, *outcome.state.population}
    if objective.rule == NESTED:
        return choose_nested(objective, everyone)
    if objective.rule == "stable":
        return Choice(choose_stable(objective, everyone))
    front = outcome.hall.front
    return Choice(sorted(front, key=lambda c: (-objective.valid(c), c.complexity, c.id)))


def choose_stable(objective: Objective, candidates: Iterable[Candidate]) -> list[Candidate]:
    """The candidates whose scores repeat, by rho on train and valid; of several tables by one
    number of them, as `--across` has it."""
    pool = _pool(candidates)
    rhos, stability = _known(objective, pool)
    complexity = [candidate.complexity for candidate in pool]
    value = objective.across_known.value(rhos)
    order = order_of(value, stability, complexity, objective.settings.stable)
    return [pool[i] for i in order]


def choose_nested(objective: Objective, candidates: Iterable[Candidate]) -> Choice:
    """The winners of the level that cross-validation takes, refitted on train and valid.

    The best formula of the level that evolution found on train comes first if it ranks the valid
    rows, which neither of them has seen, better than the level's own search on train does, by more
    than two standard errors.
    """
    tables, level = objective.tables_fitness, objective.level_choice.level
    targets = [fitness.table.targets for fitness in tables]
    rows = [fitness.train_valid_rows for fitness in tables]
    products: Sequence[Any]
    if isinstance(level, SharedLevel):
        products = level.best(targets, rows, MEMBERS)
    else:
        products = level.best(targets[0], rows[0], MEMBERS)
    formulas = [objective.canonical(level.formula(product)) for product in products]
    # (tables, measures, K)
    measured = np.stack(
        [
            fitness.measures.measure(fitness.mean_scores(formulas)[:, fitness.rows]).values
            for fitness in tables
        ]
    )
    across = objective.across().value(measured[:, MEASURES.index(RHO)]).tolist()
    fitted = [
        Candidate.refitted(place, formula, [Measures(*of) for of in values], fitness)
        for place, (formula, values, fitness) in enumerate(
            zip(formulas, measured.transpose(2, 0, 1).tolist(), across, strict=True)
        )
    ]
    evolved = evolved_beside_level(objective, candidates) if len(tables) == 1 else None
    if evolved is not None and evolved.is_better:
        fitted.insert(0, evolved.candidate)
    return Choice(fitted, evolved)


@dataclass(frozen=True, slots=True)
class Evolved:
    """Evolution's best formula of a level on train, and how it ranks the valid rows.

    `level_rho` is that of the level's own search on train, `error` the standard error of the
    difference of both.
    """

    candidate: Candidate
    rho: float
    level_rho: float
    error: float

    @property
    def is_better(self) -> bool:
        """Whether the difference is more than two of its standard errors."""
        return self.rho - self.level_rho > 2 * self.error

    def to_json(self, objective: Objective) -> dict[str, Any]:
        """The fields as JSON values, the formula in the objective's canonical form."""
        return {
            "formula": str(objective.canonical(self.candidate.formula)),
            "rho": self.rho,
            "level_rho": self.level_rho,
            "error": self.error,
            "is_taken": self.is_better,
        }


def evolved_beside_level(objective: Objective, candidates: Iterable[Candidate]) -> Evolved | None:
    """Evolution's best on train that the chosen level admits; None if there is none."""
    (fitness,) = objective.tables_fitness
    level = fitness.level_choice.level
    pool = best_first(_pool(candidates))
    formulas = [objective.canonical(candidate.formula) for candidate in pool]
    is_inside = level.admits(formulas, *fitness.repeated_scores(formulas))
    best = next((i for i, inside in enumerate(is_inside) if inside), None)
    searched = level.best(fitness.table.targets, fitness.rows, 1)
    if best is None or not searched:
        return None
    valid = fitness.parts.valid
    scores = fitness.mean_scores(formulas[best : best + 1])[0]
    own, other = (
        influence(of[valid], fitness.table.targets[valid])
        for of in (scores, level.scores(searched[0]))
    )
    return Evolved(pool[best], own.rho, other.rho, standard_error(own.moves - other.moves))


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
        "formula": str(objective.canonical(pool[best].formula)),
        "rho": float(lowest[best]),
        "rho_chosen": float(lowest[own]),
        "stability": float(stability[best]),
    }


def _passed_over(
    objective: Objective, outcome: CampaignOutcome, winner: Candidate
) -> dict[str, Any] | None:
    if objective.rule != "stable":
        return None
    return passed_over(objective, {*outcome.hall.entries, *outcome.state.population}, winner)


def _pool(candidates: Iterable[Candidate]) -> list[Candidate]:
    return sorted((c for c in candidates if c.is_scored), key=lambda c: c.id)


def _known(objective: Objective, pool: Sequence[Candidate]) -> tuple[FloatArray, FloatArray | None]:
    """Rho on train and valid of each table (tables, K), and the lowest stability (K,)."""
    formulas = [objective.canonical(candidate.formula) for candidate in pool]
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
    if objective.rule not in (NESTED, "stable"):
        return None
    formulas = [objective.canonical(candidate.formula) for candidate in chosen[:MEMBERS]]
    scores = [objective.scores(formulas, fitness) for fitness in objective.tables_fitness]
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
    """A candidate with its canonical form, and its scores (n,) on every table."""

    candidate: Candidate
    formula: Formula
    scores: Sequence[tuple[TableJudge, FloatArray]]

    def line(self) -> dict[str, Any]:
        """Its entry in the result: the formula, rho on each part (lowest table), test judgement."""
        rhos = {judged.table.name: judged.rhos(scores) for judged, scores in self.scores}
        candidate = self.candidate
        parts = next(iter(rhos.values()))
        line = {
            "formula": str(self.formula),
            "rho": {part: min(of_table[part] for of_table in rhos.values()) for part in parts},
            "complexity": candidate.complexity,
            "sign": self.formula.sign,
            "fitness": list(candidate.fitness),
            "id": candidate.id if candidate.is_in_journal else None,
            "generation": candidate.generation if candidate.is_in_journal else None,
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
        return [
            Contest(
                judged,
                scores,
                counts.get(judged.table.name),
                None if measure is None else measure(self.formula, judged.table),
            )
            for judged, scores in self.scores
        ]


def _opened(tables: Sequence[Table | ColumnTable], objective: Objective) -> list[TableJudge]:
    pairs = zip(tables, objective.tables_fitness, strict=True)
    return [
        TableJudge(table, fitness.parts, with_test=True, columns=fitness.columns.beside_counters)
        for table, fitness in pairs
    ]


def _score(
    candidate: Candidate, objective: Objective, opened: Sequence[TableJudge]
) -> _ScoredCandidate | None:
    """The candidate with its scores on all rows; None if a table rejects it."""
    formula, of_tables = objective.canonical(candidate.formula), []
    for judged, fitness in zip(opened, objective.tables_fitness, strict=True):
        scores = objective.scores([formula], fitness)[0]
        if not np.isfinite(scores).all():
            return None
        of_tables.append((judged, scores))
    return _ScoredCandidate(candidate, formula, of_tables)
