"""The judge of a campaign: evaluates formulas on the training rows of one table or several.

The winner is the best on train and valid whose scores repeat: networks with other weights on
another batch rank the architectures alike, for which no target is needed, so all rows count. The
rank mean of the best that repeat is an ensemble, a proxy like any other. The permutation floor is
what the campaign's beam search, from which evolution starts, fits to permuted targets.

A campaign of products starts from what a beam search finds on all tables together. Columns that
may change sign come first, since products have their magnitudes only. Shapes: K formulas,
A architectures.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from lpzero.arrays import FloatArray, IntArray
from lpzero.discover.candidate import Candidate, Verdict
from lpzero.discover.levels import Level, LevelChoice, LevelFloor, ReliableTerms
from lpzero.discover.settings import FITTED, NESTED, Settings
from lpzero.discover.shared_levels import (
    SharedChoice,
    SharedLevel,
    choose_shared,
    reads_words,
    shared_levels,
)
from lpzero.discover.table_fitness import TableFitness
from lpzero.errors import InputError
from lpzero.judgement.measures import MEASURES, ONE_TABLE, Across, Measures
from lpzero.judgement.ranks import rank_many
from lpzero.scores.columns import ColumnFacts, common_facts
from lpzero.scores.floor import ProductFloor, Search, permutation_floor
from lpzero.scores.products import search, search_tables
from lpzero.scores.terms import shared_term_tables, stable_term_tables
from primitives.canonical import canonical, product_of
from primitives.errors import Rejected
from primitives.formula import Column, Formula

if TYPE_CHECKING:
    from spaces.tables import ColumnTable, Table

_MOST_SINGLES = 10  # columns by themselves in the first population


class Objective:
    """Judges formulas on every table."""

    def __init__(self, tables_fitness: Sequence[TableFitness], settings: Settings) -> None:
        self.tables_fitness, self.settings = tuple(tables_fitness), settings
        self._columns = [MEASURES.index(name) for name in settings.objectives]
        # Verdicts that an interrupted run recorded after its last checkpoint, by key.
        self.known_verdicts: dict[str, Verdict | Rejected] = {}
        self._valid: dict[int, float] = {}

    def __call__(self, formulas: Sequence[Formula]) -> list[Verdict | Rejected]:
        """The verdict on each formula; the whole generation is scored and measured at once."""
        verdicts = [self.known_verdicts.get(formula.text) for formula in formulas]
        missing = [i for i, verdict in enumerate(verdicts) if verdict is None]
        if missing:
            unknown = [formulas[i] for i in missing]
            per_table = [fitness.measure(unknown) for fitness in self.tables_fitness]
            results = list(zip(*per_table, strict=True))
            for i, verdict in zip(missing, self._verdicts(results), strict=True):
                verdicts[i] = verdict
        return [verdict for verdict in verdicts if verdict is not None]

    @property
    def rule(self) -> str:
        """How the winner is chosen."""
        return self.settings.choose

    def scores(self, formulas: Sequence[Formula], fitness: TableFitness) -> FloatArray:
        """The scores (K, A) that formulas are chosen and judged by; NaN where there are none."""
        is_nested = self.rule == NESTED
        return fitness.mean_scores(formulas) if is_nested else fitness.values.scores(formulas)

    def canonical(self, formula: Formula) -> Formula:
        """The formula in canonical form, given which columns are above zero on every table."""
        return canonical(formula, self.column_facts.positive)

    def prepare(self) -> None:
        """Load or build all that judging needs, before the first formula is judged."""
        for fitness in self.tables_fitness:
            fitness.prepare()

    def train(self, candidate: Candidate) -> float:
        """The first objective on the training rows, lowest over the tables, for display."""
        return min(measures[self._columns[0]] for measures in candidate.measures)

    def valid(self, candidate: Candidate) -> float:
        """The first objective on the validation rows, lowest over the tables.

        For display and for choosing among the final front; selection does not use it.
        """
        if candidate.id not in self._valid:
            measure = self.settings.objectives[0]
            self._valid[candidate.id] = min(
                fitness.on_valid(self.canonical(candidate.formula), measure)
                for fitness in self.tables_fitness
            )
        return self._valid[candidate.id]

    def _verdicts(
        self, results: Sequence[tuple[Measures | Rejected, ...]]
    ) -> Iterator[Verdict | Rejected]:
        """The verdicts on formulas, given their measures on each table."""
        rejected = [
            next((r for r in result if isinstance(r, Rejected)), None) for result in results
        ]
        kept = [result for result, rule in zip(results, rejected, strict=True) if rule is None]
        if not kept:
            yield from filter(None, rejected)
            return
        # (measures, tables, K)
        values = (
            np.array(kept).reshape(-1, len(self.tables_fitness), len(MEASURES)).transpose(2, 1, 0)
        )
        signs = np.ones(len(kept), dtype=np.int64)
        if self.settings.sign == FITTED:  # one sign for all tables
            signs = self.across(self._columns[0]).signed(values[self._columns[0]])[1]
            values = np.where(signs < 0, 0.0 - values, values)  # not -values: no negative zeros
        fitness = [
            values[column]
            if self.settings.across == "pareto"
            else self.across(column).value(values[column])[np.newaxis]
            for column in self._columns
        ]
        by_formula = zip(
            signs.tolist(),
            values.transpose(2, 1, 0).tolist(),
            np.concatenate(fitness).T.tolist(),
            strict=True,
        )
        for rule in rejected:
            if rule is not None:
                yield rule
                continue
            sign, measures, of_formula = next(by_formula)
            yield Verdict(sign, tuple(Measures(*m) for m in measures), tuple(of_formula))

    def across(self, column: int = 0) -> Across:
        """How a measure on all tables becomes one number; the lowest where they make a front."""
        return self._across[column]

    @cached_property
    def _across(self) -> list[Across]:
        name = self.settings.across
        if len(self.tables_fitness) == 1 or name == "pareto":
            return [ONE_TABLE for _ in MEASURES]
        if name != "regret":
            return [Across(name) for _ in MEASURES]
        best = [fitness.own_best for fitness in self.tables_fitness]
        return [Across(name, [of_table[i] for of_table in best]) for i in range(len(MEASURES))]

    @cached_property
    def across_known(self) -> Across:
        """How rho on the training and validation rows of all tables becomes one number."""
        if self.across().name != "regret":
            return self.across()
        return Across("regret", [fitness.own_best_train_valid for fitness in self.tables_fitness])

    @cached_property
    def level_choice(self) -> LevelChoice | SharedChoice:
        """The level that holds on rows left out, or on tables left out if there are several."""
        if len(self.tables_fitness) == 1:
            return self.tables_fitness[0].level_choice
        choice = choose_shared(
            shared_levels(self.shared_terms),
            [fitness.table.targets for fitness in self.tables_fitness],
            [fitness.train_valid_rows for fitness in self.tables_fitness],
        )
        if choice is None:
            raise InputError("no counter, size or statistic that the tables share ranks them")
        return choice

    @property
    def shared_terms(self) -> list[ReliableTerms]:
        """The terms that all tables have, with their values on each and how far these repeat.

        What counts or reads words is left out if the vocabularies differ: it is not the same there.
        """
        tables, language = self.tables_fitness, self.tables_fitness[0].term_language
        terms = shared_term_tables([fitness.values for fitness in tables], language)
        spaces = [fitness.table.space for fitness in tables]
        if len({space.vocabulary for space in spaces if space is not None}) > 1:
            is_kept = np.array([not reads_words(term) for term in terms[0].terms], dtype=np.bool_)
            terms = [of.of(is_kept) for of in terms]
        return [fitness.reliable(of) for fitness, of in zip(tables, terms, strict=True)]

    @cached_property
    def column_facts(self) -> ColumnFacts:
        """What holds for the columns on every table."""
        return common_facts([fitness.columns for fitness in self.tables_fitness])

    def first_formulas(self) -> list[Formula]:
        """The formulas that the first population starts with, best first."""
        if not self.settings.starts_from_beam:
            return []
        return list(islice(self._beam_formulas(), self.settings.population // 2))

    def _beam_formulas(self) -> Iterator[Formula]:
        columns = self.column_facts
        signless = [name for name in columns.names if name not in columns.positive]
        yield from (Formula.of_base(Column(name)) for name in signless[:_MOST_SINGLES])
        yield from self._products()

    def _products(self) -> Iterator[Formula]:
        """The products that a beam search finds on all tables, best first."""
        columns, tables, first = self.column_facts, self.tables_fitness, self.tables_fitness[0]
        level = self.level_choice.level if self.rule == NESTED else None
        if isinstance(level, Level):  # evolution starts inside the level
            per_table = [level.terms]
        elif isinstance(level, SharedLevel):
            per_table = [of_table.terms for of_table in level.on]
        else:
            two_seeds = [fitness.two_seeds for fitness in tables]
            per_table = stable_term_tables(two_seeds, first.term_language, self.settings.stable)
        terms = per_table[0]
        if not len(terms):
            return
        searched = [fitness.searched(of) for fitness, of in zip(tables, per_table, strict=True)]
        for best in search_tables(searched, self.across(), first.beam):
            if not columns.names:
                yield best.factors.formula(terms)
                continue
            factors = [(terms.terms[term], exponent) for term, exponent in best.factors.powers]
            formula = product_of(factors, columns.positive, ranked=True)
            if formula is not None:
                yield formula


def order_of(
    rho: FloatArray, stability: FloatArray | None, complexity: Sequence[int], threshold: float
) -> IntArray:
    """The formulas that may be chosen, best first: stable ones by rho, the simpler of equals first.

    If no formula is stable the most stable one remains.
    """
    is_stable = np.ones(len(rho), dtype=np.bool_)
    if stability is not None:
        is_stable = stability >= min(threshold, float(stability.max()))
    order = np.lexsort((np.asarray(complexity), -np.round(rho, 10), ~is_stable))
    return np.asarray(order[: int(is_stable.sum())])


def rank_mean(scores: FloatArray) -> FloatArray:
    """The score (A,) of an ensemble: the mean rank over its members' scores (K, A)."""
    mean: FloatArray = rank_many(scores).mean(axis=0)
    return mean


def floors(
    tables: Sequence[Table | ColumnTable],
    objective: Objective,
    permutations: int,
    with_progress: bool = False,
) -> list[dict[str, Any]]:
    """The floor on each table as JSON values; this reads the test rows.

    Empty without permutations, and for campaigns that do not start from a beam search.
    """
    settings = objective.settings
    if not permutations or not settings.starts_from_beam:
        return []
    lines: list[dict[str, Any]] = []
    for table, fitness in zip(tables, objective.tables_fitness, strict=True):
        searched, chosen_on = fitness.rows, fitness.rows
        if objective.rule in (NESTED, "stable"):
            chosen_on = fitness.train_valid_rows
        test = fitness.parts.open_test()
        if objective.rule == NESTED:
            level = objective.level_choice.level
            if isinstance(level, SharedLevel):
                level = level.on[len(lines)]
            floor: Search = LevelFloor(level, chosen_on, test)
        else:
            logs = fitness.terms.logs
            find = partial(search, logs[:, searched], beam=fitness.beam)
            floor = ProductFloor(find, logs, searched, chosen_on, test)
        label = f"permutations of {table.name}" if with_progress else None
        floor_of_table = permutation_floor(
            floor, table.targets, permutations, workers=fitness.workers, label=label
        )
        lines.append({"table": table.name, **floor_of_table.to_json()})
    return lines
