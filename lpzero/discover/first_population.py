"""The formulas that a campaign of products starts from: what beam searches find.

Products of terms are searched on all tables together. Sums of columns are searched on each table
and take turns. Columns that may change sign come first: products have their magnitudes only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import zip_longest

from lpzero.discover.table_fitness import TableFitness
from lpzero.judgement.measures import Across
from lpzero.scores.columns import ColumnFacts
from lpzero.scores.products import search_tables
from lpzero.scores.terms import stable_term_tables
from primitives.canonical import product_of
from primitives.formula import Column, Formula

_MOST_SINGLES = 10  # columns by themselves in the first population


def first_formulas(
    tables: Sequence[TableFitness], columns: ColumnFacts, across: Across
) -> Iterator[Formula]:
    """The formulas, best first; `columns` are the facts that hold on every table."""
    signless = [name for name in columns.names if name not in columns.positive]
    yield from (Formula.of_base(Column(name)) for name in signless[:_MOST_SINGLES])
    searches = [_products(tables, columns, across), *(table.sums(columns) for table in tables)]
    if len(tables) == 1:
        yield from (formula for _, formula in merge(*searches, key=lambda best: -best[0]))
        return
    for turn in zip_longest(*searches):
        yield from (best[1] for best in turn if best is not None)


def _products(
    tables: Sequence[TableFitness], columns: ColumnFacts, across: Across
) -> Iterator[tuple[float, Formula]]:
    """The products that a beam search finds on all tables, each with its number across them."""
    first = tables[0]
    two_seeds = [fitness.two_seeds for fitness in tables]
    per_table = stable_term_tables(two_seeds, first.term_language, first.settings.stable)
    terms = per_table[0]
    if not len(terms):
        return
    searched = [fitness.searched(of) for fitness, of in zip(tables, per_table, strict=True)]
    for best in search_tables(searched, across, first.beam):
        if not columns.names:
            yield best.value, best.factors.formula(terms)
            continue
        factors = [(terms.terms[term], exponent) for term, exponent in best.factors.powers]
        formula = product_of(factors, columns.positive, ranked=True)
        if formula is not None:
            yield best.value, formula
