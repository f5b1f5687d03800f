"""Levels of formulas for several tables, chosen by what holds on tables left out.

    reliable terms of each table  ->  shared_levels: the levels of terms that all tables have
    levels, targets, rows         ->  SharedChoice: the level, and what it finds without each table

The levels are those of one table (`levels`). Each is searched on all tables but one by the least
regret: rho less the best rho that the table's own search of that level finds, in standard errors (a
table of 38 rows has larger ones than a table of 200), lowest over the tables. Few tables cannot
tell many products apart, so that of the twenty of the least regret the one that ranks most like all
of them is taken. The mean rho on the tables left out compares the levels; the best counter of a
table is the same for all of them, so that the regret against it would order them alike. Shapes: T
terms, A architectures of a table, n of its train and valid rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from lpzero.arrays import FloatArray, IntArray
from lpzero.discover.levels import LEVELS, Level, LevelLines, ReliableTerms, compare, influence
from lpzero.judgement.measures import ONE_TABLE, Across
from lpzero.judgement.ranks import centred, rank_many
from lpzero.scores.products import Found, search_tables
from lpzero.scores.terms import TermTable
from primitives.formula import Atom, Column, Formula

MEMBERS = 20  # of an ensemble
_OF_WORDS = frozenset(("params", "W", "G"))  # what an end has for each word


@dataclass(frozen=True, eq=False)
class SharedLevel:
    """A level of terms that several tables have: the level on each of them, with the same terms."""

    on: tuple[Level, ...]

    @property
    def name(self) -> str:
        return self.on[0].name

    @property
    def n_terms(self) -> int:
        return self.on[0].n_terms

    def best(
        self, targets: Sequence[FloatArray], rows: Sequence[IntArray], n: int
    ) -> Sequence[Found]:
        """The n products of the least regret on the rows of each table, the most central first."""
        every = range(len(self.on))
        return self._best(every, targets, rows, self._own(targets, rows), n)

    def formula(self, product: Found) -> Formula:
        return self.on[0].formula(product)

    def left_out(
        self, targets: Sequence[FloatArray], rows: Sequence[IntArray], n: int = 1
    ) -> list[list[Found]]:
        """For each table the n best on the others; nothing if no product differs on some."""
        own, chosen = self._own(targets, rows), []
        for place in range(len(self.on)):
            others = [other for other in range(len(self.on)) if other != place]
            chosen.append(self._best(others, targets, rows, own, n))
        return chosen if all(chosen) else []

    def _own(self, targets: Sequence[FloatArray], rows: Sequence[IntArray]) -> list[float]:
        """The best rho of each table's own search; 0 if nothing differs there."""
        own = []
        for level, of_table, on_rows in zip(self.on, targets, rows, strict=True):
            products = level.best(of_table, on_rows, 1)
            own.append(products[0].value if products else 0.0)
        return own

    def _best(
        self,
        places: Sequence[int],
        targets: Sequence[FloatArray],
        rows: Sequence[IntArray],
        own: Sequence[float],
        n: int,
    ) -> list[Found]:
        searched = [self.on[place].searched(targets[place], rows[place]) for place in places]
        across = ONE_TABLE
        if len(searched) > 1:
            across = Across("regret", [own[i] for i in places], [len(rows[i]) for i in places])
        products = search_tables(searched, across, self.on[0].beam)
        best = list(islice(products, max(n, MEMBERS)))
        if best and len(searched) > 1 and self.on[0].most > 1:
            levels = [self.on[place] for place in places]
            first = _most_central(best[:MEMBERS], levels, [rows[place] for place in places])
            best.insert(0, best.pop(first))
        return best[:n]


def _most_central(
    products: Sequence[Found], levels: Sequence[Level], rows: Sequence[IntArray]
) -> int:
    """The place of the product whose ranks agree most with the mean ranks of all, over tables."""
    agreement = np.zeros(len(products))
    for level, on_rows in zip(levels, rows, strict=True):
        scores = np.stack([level.scores(product)[on_rows] for product in products])
        ranks = centred(rank_many(scores))
        size = np.sqrt((ranks * ranks).sum(axis=1))
        agreement += ranks @ ranks.mean(axis=0) / np.where(size > 0, size, 1.0)
    return int(np.argmax(np.round(agreement, 9)))


@dataclass(frozen=True, eq=False)
class SharedChoice(LevelLines):
    """The level taken, and for each table what it finds on the others."""

    level: SharedLevel
    left_out: Sequence[Found]

    def scores(self, place: int) -> list[FloatArray]:
        """The scores (A,) on every table of what was found without the table of that place."""
        return [of_table.scores(self.left_out[place]) for of_table in self.level.on]


def reads_words(atom: Atom) -> bool:
    """Whether its value depends on the number of words, which is no choice of an architecture."""
    if isinstance(atom, Column):
        return atom.name == "parameters"
    leaves = {*atom.sizes, *atom.statistics}
    return atom.positions.end is not None and bool(leaves & _OF_WORDS)


def shared_levels(tables: Sequence[ReliableTerms]) -> list[SharedLevel]:
    """The levels that have terms, simplest first; all tables have the same terms.

    A term is as reliable as on the table where it is least so; two are one if they are alike over
    all tables, whose means do not count.
    """
    ends = np.cumsum([of.table.values.shape[1] for of in tables])[:-1]
    logs = [of.table.logs - of.table.logs.mean(axis=1, keepdims=True) for of in tables]
    first = tables[0].table
    joint = ReliableTerms(
        TermTable(first.terms, np.exp(np.concatenate(logs, axis=1)), first.positive),
        np.min([of.agreement for of in tables], axis=0),
        np.min([of.reliability for of in tables], axis=0),
        frozenset.intersection(*(of.counters for of in tables)),
    )
    found = []
    for level in map(joint.level, LEVELS):
        if len(level.terms):
            parts = np.split(level.terms.values, ends, axis=1)
            found.append(SharedLevel(tuple(level.with_values(values) for values in parts)))
    return found


def choose_shared(
    levels: Sequence[SharedLevel], targets: Sequence[FloatArray], rows: Sequence[IntArray]
) -> SharedChoice | None:
    """The simplest level within a standard error of the best on tables left out.

    None if nothing differs. `targets` (A,) and `rows` (n,), those of train and valid, are of each
    table.
    """
    usable, rhos, moves = [], [], []
    n_tables, n_rows = len(rows), sum(map(len, rows))
    for level in levels:
        chosen = [products[0] for products in level.left_out(targets, rows)]
        if not chosen:
            continue
        measured = [
            influence(on.scores(product)[on_rows], of_table[on_rows])
            for on, product, of_table, on_rows in zip(level.on, chosen, targets, rows, strict=True)
        ]
        usable.append((level, chosen))
        rhos.append(float(np.mean([of.rho for of in measured])))
        # Scaled so that the mean over all rows is the mean over tables, however long each is.
        weighted = [of.moves * (n_rows / (n_tables * len(of.moves))) for of in measured]
        moves.append(np.concatenate(weighted))
    if not usable:
        return None
    lines, taken = compare([(of.name, of.n_terms) for of, _ in usable], rhos, moves)
    level, chosen = usable[taken]
    return SharedChoice(tuple(lines), level.name, level, chosen)
