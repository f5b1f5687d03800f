"""The predictor of a campaign beside its winner: fitted on train and valid, expected, then tested.

winner, its scores, reliable terms, features of architectures  ->  TablePrediction: the predictor,
what cross-validation expects of it, and a supervised reference without any formula or network

The folds are those in which the level that was chosen was searched; in each the process is fitted
again without the rows left out. Shapes: A architectures, T terms, n training and validation rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.discover.levels import RELIABLE, Level, influence, standard_error
from lpzero.judgement.rivals import Rival
from lpzero.judgement.table import TableJudge
from lpzero.scores.features import describe
from lpzero.scores.gaussian import NormalScale, normal_targets
from lpzero.scores.predictor import Described, Predictor, ProcessOfRows, unlike
from primitives.formula import Column, Formula

if TYPE_CHECKING:
    from lpzero.discover.table_fitness import TableFitness
    from spaces.tables import ColumnTable, Table

FORMULA, REFERENCE = "formula", "gaussian-process"


@dataclass(frozen=True, eq=False)
class CrossValidated:
    """Predictions (n,) of rows left out, the rho that they have, and how far they are off."""

    rho: float
    error: float
    spread: float

    def to_json(self) -> dict[str, float]:
        """What is expected of new rows, as JSON values."""
        return {"rho": self.rho, "error": self.error}


class TablePrediction:
    """The predictor of a table's winner (A scores) and the reference, without the test targets."""

    def __init__(self, fitness: TableFitness, formula: Formula, scores: FloatArray) -> None:
        self._fitness, self._formula, self._scores = fitness, formula, scores
        table = fitness.table
        assert table.space is not None, "a table with networks"
        self._features = describe(table.space, table.archs)
        self._known, self._targets = fitness.train_valid_rows, table.targets

    @cached_property
    def _terms(self) -> tuple[list[Formula], FloatArray]:
        """The reliable terms that differ on train and valid, and their logarithms (T, A).

        A column of the table has no value for a new architecture; a counter has.
        """
        level = next((one for one in self._fitness.levels if one.name == RELIABLE), None)
        if not isinstance(level, Level):
            return [], np.empty((0, len(self._features)))
        counters = self._fitness.columns.counters
        kept = [not isinstance(t, Column) or t.name in counters for t in level.terms.terms]
        terms = level.terms.of(np.array(kept, dtype=np.bool_))
        terms = terms.of(unlike(terms.logs[:, self._known]))
        return [Formula.of_base(term) for term in terms.terms], terms.logs

    @cached_property
    def _rows(self) -> list[Described]:
        """Every architecture: its features and the logarithms of its terms by name."""
        terms, logs = self._terms
        names = [str(term) for term in terms]
        return [
            {**of_arch, **dict(zip(names, of_terms, strict=True))}
            for of_arch, of_terms in zip(self._features, logs.T.tolist(), strict=True)
        ]

    @cached_property
    def predictor(self) -> Predictor:
        """The predictor of all training and validation rows."""
        known = self._known
        fitted = Predictor.of(
            self._formula,
            self._terms[0],
            [self._rows[i] for i in known],
            self._scores[known],
            self._targets[known],
        )
        return replace(fitted, spread=self.expected.spread)

    @cached_property
    def scores(self) -> FloatArray:
        """The predictions (A,)."""
        return self.predictor.predict(self._rows, self._scores).scores

    @cached_property
    def reference(self) -> Rival:
        """The process on features alone: what a user gets without any proxy."""
        rows = [self._features[i] for i in self._known]
        fitted = ProcessOfRows(rows, self._targets[self._known])
        return Rival(REFERENCE, "supervised", fitted.predict(self._features))

    @cached_property
    def expected(self) -> CrossValidated:
        """What cross-validation on train and valid expects of the predictor."""
        return self._cross_validated(self._rows, with_formula=True)

    @cached_property
    def reference_expected(self) -> CrossValidated:
        """What it expects of the reference."""
        return self._cross_validated(self._features, with_formula=False)

    def _cross_validated(self, rows: Sequence[Described], with_formula: bool) -> CrossValidated:
        known, targets = self._known, self._targets
        normal = normal_targets(targets[known])
        rhos, moves, off = [], [], []
        for folds in self._fitness.level_choice.folded:
            predicted = np.zeros(len(known))
            for fitted_on, left_out, scores in folds:
                at = np.searchsorted(known, left_out)
                of_process = ProcessOfRows([rows[i] for i in fitted_on], targets[fitted_on])
                left = [rows[i] for i in left_out]
                predicted[at] = of_process.predict(left)
                if with_formula:
                    of_formula = NormalScale(scores[fitted_on])(scores[left_out])
                    predicted[at] = (predicted[at] + of_formula) / 2
                    deviations = of_process.deviations(left)
                    off.append(((normal[at] - predicted[at]) / deviations) ** 2)
            measured = influence(predicted, targets[known])
            rhos.append(measured.rho)
            moves.append(measured.moves)
        spread = float(np.sqrt(np.concatenate(off).mean())) if off else 1.0
        return CrossValidated(float(np.mean(rhos)), standard_error(np.mean(moves, axis=0)), spread)

    @property
    def n_seeds(self) -> int:
        """The number of seeds that values of networks are averaged over."""
        return len(self._fitness.seeds)

    def stored(self) -> dict[str, Any]:
        """The predictor as JSON values, with its formula and the number of seeds."""
        about = {"formula": str(self._formula), "n_seeds": self.n_seeds}
        return about | self.predictor.to_json()

    def to_json(self, table: Table | ColumnTable) -> dict[str, Any]:
        """`predictor` and `reference` of a result as JSON values; the table has test targets."""
        name, predictor = table.name, self.predictor
        judged = TableJudge(table, self._fitness.parts, with_test=True)
        difference = judged.compare(self.scores, {FORMULA: self._scores})[FORMULA]
        value = predictor.to_json()
        return {
            "predictor": {
                "rho": judged.rhos(self.scores),
                "judged": {name: judged.judge_chosen(self.scores)},
                "expected": self.expected.to_json(),
                "difference": difference.to_json(),  # from the formula
                "n_features": len(predictor.inputs.names) - len(predictor.terms),
                "n_terms": len(predictor.terms),
                "length": value["length"],
                "noise": value["noise"],
            },
            "reference": {
                "proxy": REFERENCE,
                "rho": judged.rhos(self.reference.scores),
                "judged": {name: judged.judge_chosen(self.reference.scores)},
                "expected": self.reference_expected.to_json(),
            },
        }
