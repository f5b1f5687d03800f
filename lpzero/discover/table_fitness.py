"""The fitness of formulas on one table: the rows it is measured on, and scores on them.

Sketches are read once; scoring a formula takes look-ups or a few matrix passes. Formulas of columns
alone need no sketches. The targets of the test rows are hidden.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from lpzero.arrays import FloatArray, IntArray
from lpzero.discover.column_levels import column_levels
from lpzero.discover.levels import (
    AnyLevel,
    LevelChoice,
    ReliableTerms,
    choose_level,
    levels,
    mean_over_seeds,
)
from lpzero.discover.settings import NESTED, Settings
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
from lpzero.scores.branch_table import branch_table
from lpzero.scores.chains import ChainSet, bare_chains, surviving
from lpzero.scores.columns import Columns
from lpzero.scores.products import Beam, Found, Searched, of_columns, search
from lpzero.scores.terms import (
    TermLanguage,
    TermTable,
    stable_term_tables,
    term_table,
    values_of,
)
from lpzero.scores.values import Values
from lpzero.sketches.sketch import Sketch
from primitives.canonical import canonical
from primitives.errors import NON_FINITE, Rejected
from primitives.expressions import drop_dead
from primitives.formula import Formula

if TYPE_CHECKING:
    from spaces.tables import ColumnTable, Split, Table

MIN_TRAINING_ROWS = 10
REPEATED_ROWS = 30  # with a second seed, to tell how far values repeat
_CACHE_BYTES = 1 << 29  # for values cached between formulas
_CONSTANT = Rejected("constant-score", "every architecture has the same score")
_NON_FINITE = Rejected(NON_FINITE, "the score of an architecture is not finite")


# The sketches of these rows of a table.
SketchesOf = Callable[[Sequence[int]], Sequence[Sketch]]


@dataclass(frozen=True, slots=True)
class TableColumns:
    """What gives the columns of every row, and those with other seeds where these differ."""

    values: Callable[[], Columns]
    second_seed: Callable[[], Columns] | None = None


class TableFitness:
    """Measures formulas on one table; its values are built when first needed."""

    def __init__(
        self,
        table: Table | ColumnTable,
        parts: Split,
        sketches: SketchesOf,
        settings: Settings,
        workers: Workers | None = None,
        label: str | None = None,
        other_seeds: Sequence[SketchesOf] = (),
        columns: TableColumns | None = None,
    ) -> None:
        self.table: Table | ColumnTable = parts.hide_test(table)
        self.parts, self._make = parts, sketches
        self.workers, self.label = workers or Workers(), label
        self._other_seeds = other_seeds
        self._columns = columns or TableColumns(Columns)
        # Longer chains are computed from chains of two.
        self.chains = surviving(min(2, max(1, settings.unaries)))
        self.settings = settings
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
        return self._make(range(len(self.table)))

    @property
    def term_language(self) -> TermLanguage:
        """Which terms products are made of; a single term follows the paper's form."""
        statistics = tuple(self.settings.statistics)
        if self.settings.terms == 1:
            return TermLanguage(("sum", "mean"), statistics, sizes=False, ends=False)
        return TermLanguage(statistics=statistics)

    @cached_property
    def repeated_rows(self) -> IntArray:
        """The rows that have values with a second seed: all, or a few that tell how they repeat.

        They depend on the number of rows alone, so that every split reads the same networks.
        """
        n, s = len(self.table), self.settings
        if s.choose != NESTED or s.weights_seeds > 1 or s.columns_only:
            return np.arange(n)
        drawn = np.random.Generator(np.random.Philox(np.random.SeedSequence([n])))
        return np.sort(drawn.permutation(n)[:REPEATED_ROWS])

    @cached_property
    def _second_seed_sketches(self) -> Sequence[Sketch] | None:
        return self._other_seeds[0](self.repeated_rows.tolist()) if self._other_seeds else None

    @cached_property
    def two_seeds(self) -> tuple[Values, Values | None]:
        """What terms are read from, with other seeds too if the choice looks at stability."""
        if self.settings.terms > 1:
            return self.values, self.second_seed
        again = self._second_seed_sketches if self.settings.reads_second_seed else None
        first = self._values(self.sketches, self.chains)
        return first, None if again is None else self._values(again, self.chains)

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
        """The scores (K, A) of these products; with levels, of those of the last level."""
        if self.settings.choose == NESTED:
            level = self.levels[-1]
            products = level.best(self.table.targets, self.rows, self.beam.exact)
            scores = [level.scores(product) for product in products]
        else:
            scores = [one.sign * one.factors.logs(self.terms.logs) for one in self.products]
        return np.stack(scores) if scores else np.zeros((1, len(self.table)))

    def best_counter(self) -> dict[str, Any]:
        """The name of the best counter on train and valid, and its rho there, as JSON values."""
        best = self._judged.best_counter()
        if best is None:
            return {"counter": None, "counter_rho": None}
        return {
            "counter": best[0],
            "counter_rho": float(self.train_valid_rho(best[1][np.newaxis])[0]),
        }

    @cached_property
    def values(self) -> Values:
        """The scores of formulas on all rows; whoever needs some of the rows takes these."""
        if self.settings.columns_only:
            return Values(columns=self.columns.values)
        chains = self.chains if self.settings.terms > 1 else surviving(1)
        return self._values(self.sketches, chains, self.columns)

    @cached_property
    def second_seed(self) -> Values | None:
        """The values of `repeated_rows` with other seeds, if the choice looks at stability."""
        columns = self._columns.second_seed
        if not self.settings.reads_second_seed:
            return None
        if self.settings.columns_only:
            return None if columns is None else Values(columns=columns().values)
        sketches = self._second_seed_sketches
        if sketches is None:
            return None
        chains = self.chains if self.settings.terms > 1 else bare_chains()
        beside = (self.columns if columns is None else columns()).at(self.repeated_rows)
        return self._values(sketches, chains, Columns(beside))

    @cached_property
    def seeds(self) -> list[Values]:
        """The values that are averaged, one for each of the seeds asked for."""
        n_others = self.settings.weights_seeds - 1
        others = [] if self.second_seed is None or n_others == 0 else [self.second_seed]
        rows = range(len(self.table))
        for sketches in self._other_seeds[1:n_others]:
            others.append(self._values(sketches(rows), self.chains, self.columns))
        return [self.values, *others]

    def mean_scores(self, formulas: Sequence[Formula]) -> FloatArray:
        """The scores (K, A) averaged over seeds; NaN for a formula that a seed rejects."""
        return mean_over_seeds(np.stack([values.scores(formulas) for values in self.seeds]))

    def repeated_scores(self, formulas: Sequence[Formula]) -> tuple[FloatArray, FloatArray]:
        """The scores (K, R) of `repeated_rows`, and those with a second seed; twice if none."""
        first = self.values.scores(formulas)[:, self.repeated_rows]
        return first, first if self.second_seed is None else self.second_seed.scores(formulas)

    @cached_property
    def levels(self) -> Sequence[AnyLevel]:
        """The levels of `--choose nested`, simplest first."""
        if self.settings.columns_only:
            return column_levels(self.columns.values, self.settings.seed)
        return levels(self.reliable(term_table(self.values, self.term_language)))

    def reliable(self, terms: TermTable) -> ReliableTerms:
        """The terms, whose values are those of the first seed, with how far they repeat."""
        again = None if self.second_seed is None else values_of(terms.terms, self.second_seed)
        reliable = ReliableTerms.of(terms, again, self.repeated_rows, self.columns.counters)
        return reliable.averaged_with([values_of(terms.terms, of) for of in self.seeds[1:]])

    @cached_property
    def level_choice(self) -> LevelChoice:
        """The level that cross-validation on train and valid takes."""
        rows, seed = self.train_valid_rows, self.parts.seed
        choice = choose_level(self.levels, self.table.targets, rows, self.table.twins(), seed)
        if choice is None:
            raise InputError(
                "no counter, size or statistic differs between the rows: nothing to rank by"
            )
        return choice

    @cached_property
    def _deep_values(self) -> Values | None:
        """Values on the fitness rows alone, where formulas are deep and other rows expensive."""
        if self.settings.terms > 1 or self.settings.columns_only:
            return None
        return self._values(self.sketches, self.chains, rows=self.rows.tolist())

    def _values(
        self,
        sketches: Sequence[Sketch],
        chains: ChainSet,
        columns: Columns | None = None,
        rows: Sequence[int] | None = None,
    ) -> Values:
        """Values from these sketches, with this table's memory and threads."""
        table = branch_table(sketches, chains, rows, self.workers, self.label)
        beside = {} if columns is None else columns.values
        return Values(table, beside, memory=_CACHE_BYTES, jobs=self.workers.jobs)

    @cached_property
    def train_valid_rows(self) -> IntArray:
        """The training and validation rows."""
        return np.sort(np.concatenate([self.parts.train, self.parts.valid]))

    def train_valid_rho(self, scores: FloatArray) -> FloatArray:
        """Rho (K,) of scores (K, n) on the training and validation rows; 0 where there is none."""
        rows = self.train_valid_rows
        rho = spearman_many(scores[:, rows], rank_targets(self.table.targets[rows])).values
        return np.where(np.isfinite(rho), rho, 0.0)

    def prepare(self) -> None:
        """Load or build all that scoring needs, before the first formula is scored."""
        _ = self._deep_values or self.values

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

    def measure(self, formulas: Sequence[Formula]) -> list[Measures | Rejected]:
        """Rho, rho given the parameters and rho within groups of each formula."""
        if not self.settings.rules:  # otherwise they are in canonical form, whose chains are kept
            formulas = [_canonical(formula) for formula in formulas]
        rows = self.rows if self._deep_values is None else slice(None)
        answers = (self._deep_values or self.values).answers(formulas)
        scores = [scores for scores in answers if not isinstance(scores, Rejected)]
        measured = iter(self._measured(np.stack(scores)[:, rows]) if scores else ())
        return [of if isinstance(of, Rejected) else next(measured) for of in answers]

    def _measured(self, scores: FloatArray) -> Iterator[Measures | Rejected]:
        """The measures of each formula's scores (K, n) on the fitness rows."""
        measured = self.measures.measure(scores)
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
