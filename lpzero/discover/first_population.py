"""The formulas that a campaign of products starts from: what beam searches find.

Products of terms are searched on all tables together. Sums of columns are searched on each table
and take turns. Columns that may change sign come first: products have their magnitudes only.
"""

from __future__ import annotations

from collections.abc import Sequence
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
) -> list[Formula]:
    """The formulas, best first; `columns` are the facts that hold on every table."""
    products = _products(tables, columns, across)
    if len(tables) == 1:
        sums = [(one.rho, one.formula) for one in tables[0].sums(columns)]
        ordered = sorted([*products, *sums], key=lambda found: -found[0])
        found = [formula for _, formula in ordered]
    else:
        each = [[one.formula for one in table.sums(columns)] for table in tables]
        turns = zip_longest([formula for _, formula in products], *each)
        found = [formula for turn in turns for formula in turn if formula is not None]
    signless = [name for name in columns.names if name not in columns.positive]
    return [*(Formula.of_base(Column(name)) for name in signless[:_MOST_SINGLES]), *found]


def _products(
    tables: Sequence[TableFitness], columns: ColumnFacts, across: Across
) -> list[tuple[float, Formula]]:
    """The products that a beam search finds on all tables, each with its number across them."""
    first = tables[0]
    if len(tables) == 1:
        terms, found = first.terms, first.products
    else:
        two_seeds = [fitness.two_seeds for fitness in tables]
        per_table = stable_term_tables(two_seeds, first.term_language, first.settings.stable)
        searched = [fitness.searched(of) for fitness, of in zip(tables, per_table, strict=True)]
        terms = per_table[0]
        found = search_tables(searched, across, first.beam) if len(terms) else []
    if not columns.names:
        return [(one.value, one.factors.formula(terms)) for one in found]
    made = []
    for one in found:
        factors = [(terms.terms[term], exponent) for term, exponent in one.factors.powers]
        formula = product_of(factors, columns.positive, ranked=True)
        if formula is not None:
            made.append((one.value, formula))
    return made
