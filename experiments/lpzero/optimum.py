"""The best fitness of a whole space, by measuring every formula of it on a campaign's own rows."""

from __future__ import annotations

from pathlib import Path

from lpzero.discover.discovery import Campaign
from lpzero.exhaust import ExhaustSettings, Query, exhaust
from lpzero.parallel import Workers
from primitives.canonical import canonical
from primitives.enumeration import families
from primitives.errors import Rejected
from primitives.expressions import Combine
from primitives.formula import Formula
from primitives.reductions import PAPER_REDUCTIONS
from spaces.tables import Split


def of_chains_of_one(found: Campaign) -> float:
    """Every formula by the campaign's own judge; a matrix product counts in either order."""
    best = 0.0
    for family in families(1):
        for reduction in PAPER_REDUCTIONS:
            formulas = list(family.formulas(reduction))
            if family.operation == "matmul":
                formulas += [_turned(formula) for formula in formulas]
            plain = [canonical(formula) for formula in formulas]
            asked = [f if f.sign > 0 else -f for f in plain]
            verdicts = [v for v in found.objective(asked) if not isinstance(v, Rejected)]
            best = max([best, *(verdict.fitness[0] for verdict in verdicts)])
    return best


def of_chains_of_two(found: Campaign, folder: Path, jobs: int) -> float:
    """By the branch algebra: millions of formulas, one order of each pair of statistics."""
    fitness = found.objective.tables_fitness[0]
    rows = Split(fitness.parts.seed, fitness.rows, fitness.parts.valid, fitness.parts.valid[:0])
    asked = ExhaustSettings(2, workers=Workers(jobs), progress=True)
    results, _ = exhaust(fitness.table, fitness.sketches, rows, folder, asked, found.options)
    return float(results.best(Query(top=1))[0].value)


def _turned(formula: Formula) -> Formula:
    assert isinstance(formula.expression, Combine)
    operation, left, right = (
        formula.expression.operation,
        formula.expression.left,
        formula.expression.right,
    )
    return Formula(Combine(operation, right, left), formula.reduction)
