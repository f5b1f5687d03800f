"""One table to search on: the rows of the fitness, and scores for them.

Sketches are read once; a formula costs look-ups or a few matrix passes. Targets of the test rows
are not here: the table of a fitness has them hidden.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.discover.settings import Settings
from lpzero.errors import InputError
from lpzero.judgement.measures import MEASURES, RHO, RHO_WITHIN, Measures, RankMeasures
from lpzero.judgement.ranks import quantise_keys
from lpzero.judgement.table import JudgedTable
from lpzero.parallel import Workers
from lpzero.scores.chains import ChainSet, bare_chains, surviving
from lpzero.scores.evaluator import FormulaEvaluator
from lpzero.sketches.sketch import Sketch
from primitives.canonical import canonical
from primitives.expressions import drop_dead
from primitives.formula import Formula
from primitives.rejection import NON_FINITE, Rejected

if TYPE_CHECKING:
    from spaces.tables import Split, Table

LEAST = 10  # training rows
_MEMORY = 1 << 29  # bytes that scoring may remember
_FEW = 6  # architectures of the early look
_CONSTANT = Rejected("constant-score", "every architecture has the same score")
_NON_FINITE = Rejected(NON_FINITE, "the score of an architecture is not finite")


class TableFitness:
    """One table to search on: its rows, and evaluators for them, made when first needed."""

    def __init__(
        self,
        table: Table,
        parts: Split,
        sketches: Callable[[], Sequence[Sketch]],
        settings: Settings,
        workers: Workers | None = None,
        label: str | None = None,
    ) -> None:
        self.table, self.parts, self._make = parts.hide_test(table), parts, sketches
        self.workers, self.label = workers or Workers(), label
        # Longer chains are computed from those of two.
        self.chains = surviving(min(2, max(1, settings.unaries)))
        self.rows = fitness_rows(self.table, parts, settings)
        self._judged = JudgedTable(self.table, parts)
        self.measures = self._judged.measures(self.rows)
        if RHO_WITHIN in settings.objectives and self.measures.n_within == 0:
            raise InputError(
                f"table {table.name} has no group of equal depth and width with 5 training"
                f" architectures: objective {RHO_WITHIN} has nothing to measure"
            )

    @cached_property
    def sketches(self) -> Sequence[Sketch]:
        """The sketches of every row."""
        return self._make()

    @cached_property
    def evaluator(self) -> FormulaEvaluator:
        """Scores on the rows of the fitness."""
        return self._evaluator(self.rows, self.label)

    @cached_property
    def glance(self) -> FormulaEvaluator:
        """Scores on a few of these rows, of sizes far apart."""
        sizes = self._judged.parameters[self.rows]
        picked = np.argsort(sizes, kind="stable")[np.linspace(0, len(sizes) - 1, _FEW).astype(int)]
        return self._evaluator(self.rows[np.sort(picked)], None)

    def prepare(self) -> None:
        """Read or make what scoring needs, so that no formula waits for it."""
        _ = self.evaluator, self.glance

    def on_valid(self, formula: Formula, measure: str) -> float:
        """A measure of the formula on the validation rows; rho if these have no groups."""
        evaluator, measures = self._valid
        scores = evaluator.score(formula)
        if isinstance(scores, Rejected):
            return 0.0
        if measure == RHO_WITHIN and measures.n_within == 0:
            measure = RHO
        return float(measures.measure(scores[np.newaxis]).values[MEASURES.index(measure), 0])

    @cached_property
    def _valid(self) -> tuple[FormulaEvaluator, RankMeasures]:
        rows = self.parts.valid
        return self._evaluator(rows, None, bare_chains()), self._judged.measures(rows)

    @cached_property
    def everywhere(self) -> FormulaEvaluator:
        """Scores on all rows, for the formulas that are reported."""
        return self._evaluator(None, None, bare_chains())

    def _evaluator(
        self, rows: Any, label: str | None, chains: ChainSet | None = None
    ) -> FormulaEvaluator:
        is_main = chains is None and len(rows) > _FEW
        is_small = rows is not None and len(rows) <= _FEW
        return FormulaEvaluator(
            self.sketches,
            chains or self.chains,
            rows=rows,
            workers=self.workers,
            memory=_MEMORY if is_main else _MEMORY // 8,
            jobs=1 if is_small else self.workers.jobs,
            label=label,
        )

    def measure(self, formulas: Sequence[Formula]) -> list[Measures | Rejected]:
        """Rho, rho given the parameters and rho within groups of each formula.

        A formula that fails on the few is not looked at on the many. What is scored is the
        canonical form, which the branch tables know, whether or not pruning made it so.
        """
        formulas = [_readable(formula) for formula in formulas]
        results: list[Measures | Rejected] = [
            _flaw(scores) or Measures(0, 0, 0) for scores in self.glance.scores(formulas)
        ]
        passed = [i for i, result in enumerate(results) if not isinstance(result, Rejected)]
        scored: list[tuple[int, FloatArray]] = []
        scores = self.evaluator.scores([formulas[i] for i in passed])
        for i, found in zip(passed, scores, strict=True):
            if isinstance(found, Rejected):
                results[i] = found
            else:
                scored.append((i, found))
        if scored:
            measured = self.measures.measure(np.stack([found for _, found in scored]))
            for place, (i, _) in enumerate(scored):
                if measured.constant[place] or measured.non_finite[place]:
                    results[i] = _CONSTANT if measured.constant[place] else _NON_FINITE
                else:
                    results[i] = Measures(*map(float, measured.values[:, place]))
        return results


def fitness_rows(table: Table, parts: Split, settings: Settings) -> Any:
    """The rows (n,) the fitness is measured on: all training rows, or a drawn few of them."""
    n = len(parts.train)
    if n < LEAST:
        raise InputError(
            f"table {table.name} has {len(table)} rows, which leaves {n} to train on;"
            f" a campaign needs at least {LEAST}"
        )
    if settings.archs is None or settings.archs >= n:
        return parts.train
    picked = random.Random(f"rows {parts.seed}").sample(range(n), settings.archs)
    return parts.train[np.sort(picked)]


def _readable(formula: Formula) -> Formula:
    return formula if drop_dead(formula.expression) is None else canonical(formula)


def _flaw(scores: FloatArray | Rejected) -> Rejected | None:
    if isinstance(scores, Rejected):
        return scores
    keys = quantise_keys(scores[np.newaxis])[0]
    return _CONSTANT if np.ptp(keys) == 0 else None
