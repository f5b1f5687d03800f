"""What an exhaustive run found: chosen on train, judged on valid and test, counters beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lpzero.exhaust.results import Entry, Query, Results
from lpzero.exhaust.run import Exhaustion
from lpzero.judgement import counters
from lpzero.judgement.correlation import spearman
from lpzero.judgement.judgement import judge
from lpzero.judgement.ranks import FloatArray
from lpzero.options import to_json
from lpzero.runs.scoresheet import column, sheet
from lpzero.scores.branch_table import BranchTable
from lpzero.scores.evaluator import FormulaEvaluator
from lpzero.scores.families import IntArray
from lpzero.sketches.sketch import Sketch
from primitives.formula import REDUCTIONS
from primitives.parser import parse
from primitives.rejection import Rejected
from primitives.sizes import measure

if TYPE_CHECKING:
    from spaces.tables import Split, Table

_SAME = 1e-9  # measures closer than this are a tie


def choose(
    table: Table,
    split: Split,
    results: Results,
    evaluator: FormulaEvaluator,
    query: Query | None = None,
) -> list[tuple[Entry, FloatArray]]:
    """The best on train with their scores on all rows (A,); ties go by valid, then complexity.

    The test rows have no part in it.
    """
    query = query or Query()
    found = []
    for entry in results.best(query):
        scores = evaluator.score(entry.formula)
        if isinstance(scores, Rejected):
            continue  # finite on train only
        valid = spearman(scores[split.valid], table.targets[split.valid])
        key = -round(entry.value / _SAME), -valid, entry.formula.complexity, str(entry.formula)
        found.append((key, entry, scores))
    found.sort(key=lambda item: item[0])
    return [(entry, scores) for _, entry, scores in found[: query.top]]


def report(
    table: Table,
    split: Split,
    sketches: Sequence[Sketch],
    found: tuple[Results, BranchTable],
    asked: Exhaustion,
    query: Query | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """The result as JSON values; reading it opens the test rows."""
    results, branches = found
    evaluator = FormulaEvaluator(sketches, table=branches)
    chosen = choose(table, split, results, evaluator, query)
    parts = {"train": split.train, "valid": split.valid, "test": split.open_test()}
    top = [_line(table, parts, entry, scores) for entry, scores in chosen]
    evaluated, constant, non_finite = results.counts
    return {
        "table": table.name,
        "space": table.space.name,
        "target": table.target,
        "licence": table.licence,
        "ceiling": table.ceiling,
        "n": {part: len(rows) for part, rows in parts.items()},
        "split_seed": split.seed,
        "unaries": asked.unaries,
        "by": (query or Query()).by,
        "query": to_json(query or Query()),
        "best": _judged(table, parts, *chosen[0], seed) if chosen else None,
        "top": top,
        "counters": [
            {
                "proxy": name,
                "table": table.name,
                "rho": _rhos(table, parts, counters.score(name, table)),
                "judged": _parts(table, parts, counters.score(name, table), seed),
            }
            for name in counters.names()
        ],
        "evaluated": evaluated,
        "rejected": _rejected(asked, constant, non_finite),
    }


def scores(
    table: Table,
    split: Split,
    sketches: Sequence[Sketch],
    branches: BranchTable,
    result: dict[str, Any],
) -> dict[str, Any] | None:
    """The winner's score and the target of every row as JSON values; None without a winner."""
    if result["best"] is None:
        return None
    formula = result["best"]["formula"]
    values = FormulaEvaluator(sketches, table=branches).score(parse(formula))
    assert not isinstance(values, Rejected), "what was chosen has scores everywhere"
    parts = {"train": split.train, "valid": split.valid, "test": split.open_test()}
    return sheet(formula, {table.name: column(table, parts, values)})


def _line(
    table: Table, parts: dict[str, IntArray], entry: Entry, scores: FloatArray
) -> dict[str, Any]:
    return {
        "formula": str(entry.formula),
        "rho": _rhos(table, parts, scores),
        "train": entry.measures,
        "complexity": entry.formula.complexity,
    }


def _judged(
    table: Table, parts: dict[str, IntArray], entry: Entry, scores: FloatArray, seed: int
) -> dict[str, Any]:
    """The line with everything a result must show, for each part and, in sample, for all rows."""
    found = _parts(table, parts, scores, seed)
    judged = {part: {**line, "in_sample": part != "test"} for part, line in found.items()}
    line = _line(table, parts, entry, scores)
    return {**line, "sign": entry.formula.sign, "judged": judged}


def _parts(
    table: Table, parts: dict[str, IntArray], scores: FloatArray, seed: int
) -> dict[str, dict[str, Any]]:
    parameters, groups = counters.score("parameters", table), table.groups("depth-width")
    everywhere = {**parts, "all": np.arange(len(table))}
    return {
        part: judge(
            scores[rows],
            table.targets[rows],
            parameters=parameters[rows],
            groups=groups[rows],
            seed=seed,
        ).to_json()
        for part, rows in everywhere.items()
    }


def _rhos(table: Table, parts: dict[str, IntArray], scores: FloatArray) -> dict[str, float]:
    return {part: spearman(scores[rows], table.targets[rows]) for part, rows in parts.items()}


def _rejected(asked: Exhaustion, constant: int, non_finite: int) -> dict[str, int]:
    """Formulas by the rule that removed them, of both reductions together.

    `duplicate` were the same as another one up to sign; `constant-score` and `non-finite` were
    evaluated and cannot be chosen.
    """
    size = measure(asked.unaries, asked.same_statistic)
    n = len(REDUCTIONS)
    counts = {rule: n * count for rule, count in size.rejected.items()}
    counts["duplicate"] = n * (size.kept - size.distinct)
    return counts | {"constant-score": constant, "non-finite": non_finite}
