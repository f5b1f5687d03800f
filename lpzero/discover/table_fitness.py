"""The fitness of formulas on one table: the rows it is measured on, and scores on them.

Sketches are read once; scoring a formula takes look-ups or a few matrix passes. Formulas of columns
alone need no sketches. The targets of the test rows are hidden.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from lpzero.arrays import FloatArray, IntArray
from lpzero.discover.settings import Settings
from lpzero.errors import InputError
from lpzero.judgement.correlation import spearman_many
from lpzero.judgement.measures import (
    MEASURES,
    RHO,
    RHO_GIVEN_PARAMS,
    RHO_WITHIN,
    Measures,
    RankMeasures,
)
from lpzero.judgement.ranks import rank_targets
from lpzero.judgement.table import TableJudge
from lpzero.parallel import Workers
from lpzero.scores.branch_table import BranchTable, branch_table
from lpzero.scores.byte_cache import ByteCache
from lpzero.scores.chains import ChainSet, bare_chains, surviving
from lpzero.scores.column_evaluator import ColumnEvaluator
from lpzero.scores.columns import ColumnFacts, Columns
from lpzero.scores.evaluator import FormulaEvaluator
from lpzero.scores.formula_scorer import FormulaScorer
from lpzero.scores.products import Beam, Found, Searched, of_columns, search
from lpzero.scores.row_batches import scorer_of
from lpzero.scores.stable_terms import TwoSeeds, stable_term_tables
from lpzero.scores.sums import search_sums
from lpzero.scores.terms import TermLanguage, TermSource, TermTable
from lpzero.sketches.sketch import Sketch
from primitives.canonical import canonical
from primitives.expressions import drop_dead
from primitives.formula import Formula, Power
from primitives.rejection import NON_FINITE, Rejected

if TYPE_CHECKING:
    from spaces.tables import ColumnTable, Split, Table

MIN_TRAINING_ROWS = 10
_CACHE_BYTES = 1 << 29  # for values cached between formulas
_CONSTANT = Rejected("constant-score", "every architecture has the same score")
_NON_FINITE = Rejected(NON_FINITE, "the score of an architecture is not finite")


@dataclass(frozen=True, slots=True)
class TableColumns:
    """What gives the columns of every row, and those with other seeds where these differ."""

    values: Callable[[], Columns]
    second_seed: Callable[[], Columns] | None = None


class TableFitness:
    """Measures formulas on one table; its evaluators are built when first needed."""

    def __init__(
        self,
        table: Table | ColumnTable,
        parts: Split,
        sketches: Callable[[], Sequence[Sketch]],
        settings: Settings,
        workers: Workers | None = None,
        label: str | None = None,
        second_seed: Callable[[], Sequence[Sketch]] | None = None,
        columns: TableColumns | None = None,
    ) -> None:
        self.table: Table | ColumnTable = parts.hide_test(table)
        self.parts, self._make = parts, sketches
        self.workers, self.label = workers or Workers(), label
        self._make_second_seed = second_seed
        self._columns = columns or TableColumns(Columns)
        # Longer chains are computed from chains of two.
        self.chains = surviving(min(2, max(1, settings.unaries)))
        self.settings = settings
        self._powers: ByteCache[FloatArray | Rejected] = ByteCache(_CACHE_BYTES // 4)
        self.rows = fitness_rows(self.table, parts, settings)
        self._judged = TableJudge(self.table, parts)
        self.measures = self._judged.measures(self.rows)
        if RHO_GIVEN_PARAMS in settings.objectives and not self.measures.has_parameters:
            raise InputError(
                f"table {table.name} has no networks, hence no parameters: objective"
                f" {RHO_GIVEN_PARAMS} cannot be measured"
            )
        if RHO_WITHIN in settings.objectives and self.measures.n_within == 0:
            raise InputError(
                f"table {table.name} has no group of equal depth and width with 5 training"
                f" architectures: objective {RHO_WITHIN} cannot be measured"
            )

    @cached_property
    def columns(self) -> Columns:
        """The columns of every row that formulas may use."""
        return self._columns.values()

    @cached_property
    def sketches(self) -> Sequence[Sketch]:
        """The sketches of every row."""
        return self._make()

    @cached_property
    def branches(self) -> BranchTable:
        """The branch table of all rows, which products of terms are searched on."""
        return branch_table(self.sketches, self.chains, None, self.workers, self.label)

    @property
    def term_language(self) -> TermLanguage:
        """Which terms products are made of; a single term follows the paper's form."""
        statistics = tuple(self.settings.statistics)
        if self.settings.terms == 1:
            return TermLanguage(("sum", "mean"), statistics, sizes=False, ends=False)
        return TermLanguage(statistics=statistics)

    @cached_property
    def _second_seed_sketches(self) -> Sequence[Sketch] | None:
        return None if self._make_second_seed is None else self._make_second_seed()

    @cached_property
    def two_seeds(self) -> TwoSeeds:
        """What terms are read from, with other seeds too if the choice looks at stability."""
        only = self.settings.columns_only
        first = TermSource(None if only else self.branches, self.columns.values)
        if self.settings.choose != "stable" or (self._make_second_seed is None and not only):
            return TwoSeeds(first, None)
        again = None if self._columns.second_seed is None else self._columns.second_seed().values
        if only:
            return TwoSeeds(first, None if again is None else TermSource(None, again))
        sketches = self._second_seed_sketches
        assert sketches is not None
        made = branch_table(sketches, self.chains, None, self.workers, self.label)
        return TwoSeeds(first, TermSource(made, self.columns.values if again is None else again))

    @cached_property
    def terms(self) -> TermTable:
        """The terms that products are made of, on all rows."""
        (terms,) = stable_term_tables([self.two_seeds], self.term_language, self.settings.stable)
        return terms

    @cached_property
    def products(self) -> list[Found]:
        """The products that a beam search finds on the fitness rows, best first."""
        return search(*self.searched(self.terms), self.beam) if len(self.terms) else []

    @property
    def beam(self) -> Beam:
        """How products are searched; columns alone have finer exponents."""
        most = self.settings.terms
        return of_columns(most) if self.settings.columns_only else Beam(factors=most)

    def searched(self, terms: TermTable) -> Searched:
        """The terms on the fitness rows, with the ranked targets."""
        return Searched(terms.logs[:, self.rows], rank_targets(self.table.targets[self.rows]))

    @cached_property
    def own_best(self) -> Measures:
        """The largest of each measure over the products that the table's own search finds."""
        scores = self._own_scores
        return Measures(*self.measures.measure(scores[:, self.rows]).values.max(axis=1).tolist())

    @cached_property
    def own_best_train_valid(self) -> float:
        """Their largest rho on the training and validation rows."""
        return float(self.train_valid_rho(self._own_scores).max())

    @property
    def _own_scores(self) -> FloatArray:
        if not self.products:
            return np.zeros((1, len(self.table)))
        return np.stack([one.sign * one.factors.logs(self.terms.logs) for one in self.products])

    def sums(self, columns: ColumnFacts) -> Iterator[tuple[float, Formula]]:
        """The sums of columns that a beam search finds on the fitness rows, best first."""
        targets, most = self.table.targets, self.settings.terms
        return search_sums(self.columns, columns, targets, self.rows, most)

    @cached_property
    def second_seed_values(self) -> FormulaScorer | None:
        """The evaluator on all rows with networks and batches of other seeds, if there is one."""
        columns = self._columns.second_seed
        if self.settings.columns_only:
            return None if columns is None else ColumnEvaluator(columns().values)
        sketches = self._second_seed_sketches
        if sketches is None:
            return None
        beside = (self.columns if columns is None else columns()).values
        if self.settings.terms > 1 and self.two_seeds.second is not None:
            table = self.two_seeds.second.branches
            return FormulaEvaluator(sketches, table=table, columns=beside)
        chains = self.chains if self.settings.terms > 1 else bare_chains()
        return FormulaEvaluator(
            sketches, chains, workers=self.workers, label=self.label, columns=beside
        )

    @cached_property
    def train_valid_rows(self) -> IntArray:
        """The training and validation rows."""
        return np.sort(np.concatenate([self.parts.train, self.parts.valid]))

    def train_valid_rho(self, scores: FloatArray) -> FloatArray:
        """Rho (K,) of scores (K, n) on the training and validation rows; 0 where there is none."""
        rows = self.train_valid_rows
        rho = spearman_many(scores[:, rows], rank_targets(self.table.targets[rows])).values
        return np.where(np.isfinite(rho), rho, 0.0)

    @cached_property
    def values(self) -> FormulaScorer:
        """The scores of formulas on all rows; whoever needs some of the rows takes these."""
        if self.settings.columns_only:
            return ColumnEvaluator(self.columns.values)
        table = self.branches if self.settings.terms > 1 else None
        return self._evaluator(surviving(1), table=table, columns=self.columns.values)

    @cached_property
    def _values_of_deep_formulas(self) -> FormulaScorer | None:
        """Scores on the fitness rows alone, where formulas are deep and other rows expensive."""
        if self.settings.terms > 1 or self.settings.columns_only:
            return None
        return self._evaluator(self.chains, rows=self.rows, label=self.label)

    def _evaluator(self, chains: ChainSet, **options: Any) -> FormulaEvaluator:
        """An evaluator with this table's sketches, memory and threads."""
        given: dict[str, Any] = {
            "workers": self.workers,
            "memory": _CACHE_BYTES,
            "jobs": self.workers.jobs,
        }
        return FormulaEvaluator(self.sketches, chains, **given, **options)

    def _fitness_scores(self, formulas: Sequence[Formula]) -> list[FloatArray | Rejected]:
        """The scores of each formula on the fitness rows."""
        if self._values_of_deep_formulas is not None:
            return self._values_of_deep_formulas.scores(formulas)
        found = self.values.scores(formulas)
        return [scores if isinstance(scores, Rejected) else scores[self.rows] for scores in found]

    def prepare(self) -> None:
        """Load or build all that scoring needs, before the first formula is scored."""
        _ = self._values_of_deep_formulas or self.values

    def on_valid(self, formula: Formula, measure: str) -> float:
        """A measure of the formula on the validation rows; rho instead if they have no groups."""
        scores, measures = self.values.score(formula), self._valid_measures
        if isinstance(scores, Rejected):
            return 0.0
        if measure == RHO_WITHIN and measures.n_within == 0:
            measure = RHO
        on_valid = scores[np.newaxis, self.parts.valid]
        return float(measures.measure(on_valid).values[MEASURES.index(measure), 0])

    @cached_property
    def _valid_measures(self) -> RankMeasures:
        return self._judged.measures(self.parts.valid)

    @property
    def row_batches(self) -> FormulaScorer:
        """Scores formulas that need tensors on all rows, some rows at a time if these are large."""
        evaluator = self.values
        if not isinstance(evaluator, FormulaEvaluator):
            return evaluator
        return scorer_of(self.sketches, evaluator.table.chains, evaluator.table, self.workers)

    def measure(self, formulas: Sequence[Formula]) -> list[Measures | Rejected]:
        """Rho, rho given the parameters and rho within groups of each formula."""
        if not self.settings.rules:  # otherwise they are in canonical form, whose chains are kept
            formulas = [_canonical(formula) for formula in formulas]
        scores = self.scores(formulas)
        finite = [of_formula for of_formula in scores if not isinstance(of_formula, Rejected)]
        measured = iter(self._measured(finite))
        return [
            of_formula if isinstance(of_formula, Rejected) else next(measured)
            for of_formula in scores
        ]

    def _measured(self, scores: Sequence[FloatArray]) -> Iterator[Measures | Rejected]:
        """The measures of each formula's scores (n,) on the fitness rows."""
        if not scores:
            return
        measured = self.measures.measure(np.stack(scores))
        flaws = zip(measured.constant.tolist(), measured.non_finite.tolist(), strict=True)
        for (is_constant, is_infinite), values in zip(
            flaws, measured.values.T.tolist(), strict=True
        ):
            if is_constant:
                yield _CONSTANT
            elif is_infinite:
                yield _NON_FINITE
            else:
                yield Measures(*values)

    def scores(self, formulas: Sequence[Formula]) -> list[FloatArray | Rejected]:
        """The scores (n,) of each formula on the fitness rows.

        Powers of terms and columns are scored once; a product of several is their product, in the
        order of its text.
        """
        factors = [_factors(formula) for formula in formulas]
        wanted = dict.fromkeys(factor for of_formula in factors for factor in of_formula)
        known = {factor: self._powers.get(factor) for factor in wanted}
        missing = [factor for factor, values in known.items() if values is None]
        for factor, values in zip(missing, self._fitness_scores(missing), strict=True):
            known[factor] = values
            size = 500 if isinstance(values, Rejected) else values.nbytes + 500
            self._powers.put(factor, values, size)
        with np.errstate(all="ignore"):  # an overflow is a rejection
            return [
                _product([known[factor] for factor in of_formula], formula.sign)
                for formula, of_formula in zip(formulas, factors, strict=True)
            ]


def fitness_rows(table: Table | ColumnTable, parts: Split, settings: Settings) -> Any:
    """The rows (n,) the fitness is measured on: all training rows, or a random sample of them."""
    n = len(parts.train)
    if n < MIN_TRAINING_ROWS:
        raise InputError(
            f"table {table.name} has {len(table)} rows, {n} of them for training;"
            f" a campaign needs at least {MIN_TRAINING_ROWS}"
        )
    if settings.archs is None or settings.archs >= n:
        return parts.train
    picked = random.Random(f"rows {parts.seed}").sample(range(n), settings.archs)
    return parts.train[np.sort(picked)]


def _canonical(formula: Formula) -> Formula:
    """The canonical form; the formula itself if every branch is disconnected."""
    if formula.is_term and drop_dead(formula.term.expression) is None:
        return formula
    return canonical(formula)


def _factors(formula: Formula) -> tuple[Formula, ...]:
    """The formulas whose scores, multiplied, are the formula's without its sign."""
    if len(formula.powers) == 1:
        return (formula.with_sign(1),)
    return tuple([factor for power in formula.powers for factor in _powers(power)])


@lru_cache(maxsize=65536)
def _powers(power: Power) -> tuple[Formula, ...]:
    """The power as the powers that its text multiplies: x^(3/2) is written x sqrt(x)."""
    sizes = [Fraction(1), Fraction(-1)] if not power.exponent else _summands(power.exponent)
    return tuple(Formula(1, (Power(power.base, size),)) for size in sizes)


def _summands(exponent: Fraction) -> list[Fraction]:
    """The exponent as powers of two with its sign, the largest first."""
    sign, rest = (1 if exponent > 0 else -1), abs(exponent.numerator)
    bits = [bit for bit in range(rest.bit_length() - 1, -1, -1) if rest >> bit & 1]
    return [Fraction(sign << bit, exponent.denominator) for bit in bits]


def _product(values: Sequence[FloatArray | Rejected | None], sign: int) -> FloatArray | Rejected:
    """The scores multiplied; the first rejection, or that of a product that is not finite."""
    total: FloatArray | None = None
    for factor in values:
        if isinstance(factor, Rejected):
            return factor
        assert factor is not None, "every factor was scored"
        total = factor if total is None else total * factor
    assert total is not None
    if len(values) > 1 and not np.isfinite(total).all():
        return _NON_FINITE
    return total if sign > 0 else -total
