"""The result of an exhaustive run: chosen on train, judged on valid and test, with counters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lpzero.arrays import FloatArray
from lpzero.exhaust.products import PairResults
from lpzero.exhaust.results import Entry, Query, Results
from lpzero.exhaust.run import ExhaustSettings
from lpzero.judgement import counters
from lpzero.judgement.correlation import stability
from lpzero.judgement.rivals import Contest, Count, contest_fields, rival_lines
from lpzero.judgement.table import TableJudge
from lpzero.options import to_json
from lpzero.parallel import Workers
from lpzero.runs.formula_run import column, sheet
from lpzero.scores.branch_table import BranchTable
from lpzero.scores.chains import bare_chains
from lpzero.scores.floor import ProductFloor, permutation_floor
from lpzero.scores.formula_rivals import formula_rivals
from lpzero.scores.products import PairScreen
from lpzero.scores.row_batches import scores_in_batches
from lpzero.scores.values import MISSING_STATISTIC, Values
from lpzero.sketches.sketch import Sketch
from primitives.errors import Rejected
from primitives.parser import parse
from primitives.reductions import PAPER_REDUCTIONS
from primitives.space_size import measure

if TYPE_CHECKING:
    from spaces.tables import Split, Table

_TIE = 1e-9  # measures closer than this are a tie


def choose(
    table: Table,
    split: Split,
    results: Results | PairResults,
    values: Values,
    query: Query | None = None,
) -> list[tuple[Entry, FloatArray]]:
    """The best on train with their scores on all rows (A,); valid, then complexity, breaks ties.

    The test rows are not used.
    """
    query = query or Query()
    judged = TableJudge(table, split)
    ranked = []
    for entry in results.best(query):
        scores = values.score(entry.formula)
        if isinstance(scores, Rejected):
            continue  # finite on train only
        valid = judged.rho(scores, "valid")
        key = -round(entry.value / _TIE), -valid, entry.formula.complexity, str(entry.formula)
        ranked.append((key, entry, scores))
    ranked.sort(key=lambda item: item[0])
    return [(entry, scores) for _, entry, scores in ranked[: query.top]]


def report(
    table: Table,
    split: Split,
    measured: tuple[Results | PairResults, BranchTable],
    asked: ExhaustSettings,
    query: Query | None = None,
    count: Count | None = None,
    repeated: Sequence[Sketch] | None = None,
) -> dict[str, Any]:
    """The result as JSON values; this reads the test rows.

    `count` is the best count found on train; without it the winner is compared with the best
    counter alone. `repeated` are sketches of other weights and batches, for its stability.
    """
    results, branches = measured
    chosen = choose(table, split, results, Values(branches), query)
    judged = TableJudge(table, split, with_test=True)
    contests = []
    for entry, scores in chosen[:1]:
        repeats = None
        if repeated is not None:
            source = repeated, bare_chains()
            repeats = stability(scores, scores_in_batches([entry.formula], source, asked.workers))
        contests.append(Contest(judged, scores, count, repeats))
    evaluated, constant, non_finite = results.counts
    return {
        "tables": [{"name": table.name, **judged.facts, "n_fitness": len(split.train)}],
        "chosen_on": "train",
        "unaries": asked.unaries,
        "terms": asked.terms,
        "by": (query or Query()).by,
        "query": to_json(query or Query()),
        "best": _best(judged, *chosen[0]) if chosen else None,
        "top": [_line(judged, entry, scores) for entry, scores in chosen],
        "counters": list(judged.counters()),
        **contest_fields(contests),
        "evaluated": evaluated,
        "ranked": results.ranked if isinstance(results, PairResults) else evaluated,
        "rejected": _rejected(asked, constant, non_finite) | _unread(results, branches),
    }


def scores(
    table: Table,
    split: Split,
    branches: BranchTable,
    result: dict[str, Any],
    workers: Workers | None = None,
) -> dict[str, Any] | None:
    """The winner's score and the target of every row as JSON values; None if there is no winner."""
    if result["best"] is None:
        return None
    formula = result["best"]["formula"]
    values = Values(branches).score(parse(formula))
    assert not isinstance(values, Rejected), "the winner has a score on every row"
    judged = TableJudge(table, split, with_test=True)
    count = (result.get("count") or {}).get("formula")
    rivals = formula_rivals(branches, count, counters.factors(table), workers)
    lines = rival_lines(judged, values, rivals)
    return sheet(formula, {table.name: column(table, judged.parts, values, lines)})


def _line(judged: TableJudge, entry: Entry, scores: FloatArray) -> dict[str, Any]:
    return {
        "formula": str(entry.formula),
        "rho": judged.rhos(scores),
        "train": entry.measures._asdict(),
        "complexity": entry.formula.complexity,
    }


def _best(judged: TableJudge, entry: Entry, scores: FloatArray) -> dict[str, Any]:
    """The formula's line, with the judgement of every part."""
    line = _line(judged, entry, scores)
    judgements = {judged.table.name: judged.judge_chosen(scores)}
    return {**line, "sign": entry.formula.sign, "judged": judgements}


def _unread(results: Results | PairResults, branches: BranchTable) -> dict[str, int]:
    """How many formulas read a statistic that the networks do not have; nothing if none does."""
    if isinstance(results, PairResults) or not branches.absent:
        return {}
    n_unread = sum(
        len(family)
        for family in results.families
        if any(side[0].statistic in branches.absent for side in family.sides)
    )
    return {MISSING_STATISTIC: len(PAPER_REDUCTIONS) * n_unread}


def _rejected(asked: ExhaustSettings, constant: int, non_finite: int) -> dict[str, int]:
    """Formulas by the rule that removed them, of both reductions together.

    A `duplicate` equals another formula up to sign; `constant-score` and `non-finite` formulas were
    evaluated but cannot be chosen.
    """
    if asked.terms == 2:
        return {"constant-score": constant, "non-finite": non_finite}
    size = measure(asked.unaries, asked.same_statistic)
    n = len(PAPER_REDUCTIONS)
    counts = {rule: n * count for rule, count in size.rejected.items()}
    counts["duplicate"] = n * (size.kept - size.distinct)
    return counts | {"constant-score": constant, "non-finite": non_finite}


def floors(
    table: Table,
    split: Split,
    results: Results | PairResults,
    permutations: int,
    asked: ExhaustSettings,
) -> list[dict[str, Any]]:
    """The floor on the table as JSON values, in a list; this reads the test rows.

    All products are screened by closed form for each permutation and the best ranked exactly.
    Empty without permutations, and for the paper's space.
    """
    if not permutations or not isinstance(results, PairResults):
        return []
    logs, train = results.terms.logs, split.train
    floor = ProductFloor(PairScreen.of(logs[:, train]).best, logs, train, train, split.open_test())
    label = "permutations" if asked.progress else None
    reached = permutation_floor(
        floor, table.targets, permutations, workers=asked.workers, label=label
    )
    return [{"table": table.name, **reached.to_json()}]
