"""The terms that products are made of: one number per architecture for each of thousands of terms.

Values: branch table, columns  ->  TermTable: terms (T) with values (T, A), all above zero
several of them                ->  one TermTable each, of the same terms

A term here is a chain of a statistic or of a size under a reduction over positions, or a column. It
must be finite and of one sign on every architecture, so that its powers and logarithm are defined;
targets have no part in that. Terms whose logarithms agree up to a factor are one term. A term is
stable if networks with other weights on another batch rank alike by it: a product of such terms
mostly repeats too, and a search meets fewer terms that fit by chance.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from lpzero.arrays import BoolArray, FloatArray, IntArray
from lpzero.judgement.correlation import agreement
from lpzero.scores.branch_table import BranchTable, over_blocks
from lpzero.scores.columns import Columns
from primitives.expressions import Expression, branch
from primitives.formula import Atom, Column, Term
from primitives.reductions import POSITION_REDUCTIONS, Reduction, ReductionFacts
from primitives.registry import get_unary
from primitives.statistics import SIZES, STATISTICS

if TYPE_CHECKING:
    from lpzero.scores.values import Values

BLOCK_REDUCTIONS: tuple[Reduction, ...] = tuple(
    name for name, facts in POSITION_REDUCTIONS.items() if facts.end is None
)
END_REDUCTIONS: tuple[Reduction, ...] = tuple(
    name for name, facts in POSITION_REDUCTIONS.items() if facts.end is not None
)
SIZE_CHAINS: tuple[tuple[str, ...], ...] = ((), ("sqrt",), ("square",), ("log",), ("inverse",))
# Logarithms that differ by less than this share of their spread are the same up to rounding.
_SAME = 1e-7


@dataclass(frozen=True, slots=True)
class TermLanguage:
    """Which terms there are: reductions over blocks, statistics, sizes of blocks, both ends."""

    reductions: tuple[Reduction, ...] = BLOCK_REDUCTIONS
    statistics: tuple[str, ...] = field(default_factory=lambda: tuple(STATISTICS))
    sizes: bool = True
    ends: bool = True


# Counts need no network: sizes alone, where the search of the best count looks for them.
COUNTS = TermLanguage(reductions=("sum", "inner", "last"), statistics=())


@dataclass(frozen=True, eq=False)
class TermTable:
    """Terms with the absolute values (T, A) they have on each architecture."""

    terms: tuple[Atom, ...]
    values: FloatArray
    positive: frozenset[str] = frozenset()  # the columns that are above zero on every architecture

    @cached_property
    def logs(self) -> FloatArray:
        """The logarithms of the values (T, A)."""
        return np.log(self.values)

    def __len__(self) -> int:
        return len(self.terms)

    def of(self, kept: BoolArray) -> TermTable:
        """The table of the terms where `kept` (T,) is true."""
        terms = tuple(term for term, keep in zip(self.terms, kept, strict=True) if keep)
        return TermTable(terms, self.values[kept], self.positive)


def term_table(values: Values, language: TermLanguage | None = None) -> TermTable:
    """The distinct terms of the language on one table, simplest first.

    Without a branch table the terms are the columns alone. A column enters as its magnitude.
    """
    (terms,) = shared_term_tables([values], language)
    return terms


def stable_term_tables(
    tables: Sequence[tuple[Values, Values | None]], language: TermLanguage, threshold: float
) -> list[TermTable]:
    """The terms that all tables share and whose values repeat on each, one table for each.

    Each table has values of two seeds; where there is no second seed its terms count as stable.
    """
    shared = shared_term_tables([first for first, _ in tables], language)
    is_stable = np.ones(len(shared[0]), dtype=np.bool_)
    for terms, (_, second) in zip(shared, tables, strict=True):
        if second is not None:
            again = np.abs(values_of(terms.terms, second))
            is_stable &= agreement(terms.values, again) >= threshold
    return [terms.of(is_stable) for terms in shared]


def values_of(terms: Sequence[Atom], values: Values) -> FloatArray:
    """The values (T, A) of the terms from another seed; NaN where it does not have a term."""
    names, rows = _every_term(values, None)
    places = {term: place for place, term in enumerate(names)}
    result = np.full((len(terms), rows.shape[1]), np.nan)
    for row, term in enumerate(terms):
        if term in places:
            result[row] = rows[places[term]]
    return result


def _every_term(values: Values, language: TermLanguage | None) -> tuple[list[Atom], FloatArray]:
    """All terms of the language with their values (T, A), usable or not."""
    terms: list[Atom] = []
    rows: list[FloatArray] = []
    if values.has_networks:
        for of_group, group_values in _network_terms(values.table, language or TermLanguage()):
            terms += of_group
            rows.append(group_values)
    if values.columns:
        terms += [Column(name) for name in values.columns]
        rows.append(np.abs(np.stack(list(values.columns.values()))))
    return terms, np.concatenate(rows) if rows else np.empty((0, values.n_archs))


def shared_term_tables(
    tables: Sequence[Values], language: TermLanguage | None = None
) -> list[TermTable]:
    """The distinct terms that several tables share, simplest first, one table of them for each."""
    every = [_every_term(table, language) for table in tables]
    terms, *others = (names for names, _ in every)
    values = [of_table for _, of_table in every]
    if others:
        shared = set(terms).intersection(*others)
        terms = [term for term in terms if term in shared]
        places = [{term: row for row, term in enumerate(names)} for names, _ in every]
        values = [
            of_table[[rows[term] for term in terms]]
            for rows, of_table in zip(places, values, strict=True)
        ]
    stacked = np.concatenate(values, axis=1)
    order = np.argsort([term.complexity for term in terms], kind="stable").astype(np.int64)
    order = order[_usable(stacked[order])]
    logs = [np.log(np.abs(of_table[order])) for of_table in values]
    if others:  # a shift between tables changes no ranking
        logs = [of_table - of_table.mean(axis=1, keepdims=True) for of_table in logs]
    kept = order[_distinct(np.concatenate(logs, axis=1))]
    names = tuple(terms[i] for i in kept)
    positive = frozenset.intersection(*(Columns(table.columns).positive for table in tables))
    return [TermTable(names, np.abs(of_table[kept]), positive) for of_table in values]


def _network_terms(
    branches: BranchTable, language: TermLanguage
) -> Iterator[tuple[list[Atom], FloatArray]]:
    """Terms with their values (T, A), a statistic or size at a time."""
    for statistic in language.statistics:
        if statistic in branches.absent:
            continue
        chains = branches.chains.chains[statistic]
        expressions = [branch(statistic, *chain) for chain in chains]
        yield from _reduced(expressions, branches.block_means[statistic], branches, language)
        for end in END_REDUCTIONS if language.ends else ():
            if (end, statistic) in branches.ends:
                yield _terms(expressions, end), branches.ends[end, statistic]
    if language.sizes:
        yield from _size_terms(branches, language)


def _size_terms(
    branches: BranchTable, language: TermLanguage
) -> Iterator[tuple[list[Atom], FloatArray]]:
    for name in SIZES:
        expressions = [branch(name, *chain) for chain in SIZE_CHAINS]
        if name in branches.sizes:
            raw = branches.sizes[name]
            by_chain = np.stack([_apply(chain, raw, branches.has_block) for chain in SIZE_CHAINS])
            yield from _reduced(expressions, by_chain, branches, language)
        for end in END_REDUCTIONS if language.ends else ():
            if (end, name) in branches.end_sizes:  # powers of one number are the product's work
                yield _terms(expressions[:1], end), branches.end_sizes[end, name][np.newaxis]


def _apply(chain: Sequence[str], values: FloatArray, where: BoolArray) -> FloatArray:
    """The chain on each block's number (A, B), zero where there is no block."""
    result = np.zeros(values.shape)
    with np.errstate(all="ignore"):
        numbers = values[where].reshape(-1, 1)
        for operation in chain:
            numbers = get_unary(operation).body(numbers, np)
    result[where] = numbers.reshape(-1)
    return result


def _terms(expressions: Iterable[Expression], reduction: Reduction) -> list[Atom]:
    return [Term(reduction, expression) for expression in expressions]


def _reduced(
    expressions: Sequence[Expression],
    block_means: FloatArray,
    branches: BranchTable,
    language: TermLanguage,
) -> Iterator[tuple[list[Atom], FloatArray]]:
    """Each reduction of the expressions' values at blocks (chains, A, B)."""
    for reduction in language.reductions:
        values = reduce_blocks(block_means, branches.n_blocks, reduction)
        yield _terms(expressions, reduction), values


def reduce_blocks(block_means: FloatArray, n_blocks: IntArray, reduction: Reduction) -> FloatArray:
    """The reduction over blocks: (..., A, B) -> (..., A); blocks beyond an architecture's are 0."""
    facts = POSITION_REDUCTIONS[reduction]
    numbers = range(1, block_means.shape[-1] + 1)
    if facts.is_single:
        first = np.array([facts.reads(n).indices(n)[0] for n in numbers])
        return np.asarray(block_means[..., np.arange(len(n_blocks)), first[n_blocks - 1]])
    if not facts.reads_all:
        read = [np.isin(numbers, numbers[:n][facts.reads(n)]) for n in numbers]
        block_means = np.where(np.stack(read)[n_blocks - 1], block_means, 0.0)
    return over_blocks(block_means) / divisors(facts, n_blocks)


def divisors(reduction: ReductionFacts, n_blocks: IntArray) -> FloatArray:
    """What the sums over blocks (A,) of each architecture are divided by."""
    return np.array([reduction.divisor(int(n)) for n in n_blocks], dtype=np.float64)


def _usable(values: FloatArray) -> BoolArray:
    """Which rows (T, A) are finite, of one sign and not constant."""
    finite: BoolArray = np.asarray(np.isfinite(values).all(axis=1))
    safe = np.where(finite[:, np.newaxis], values, 0.0)
    same_sign = (safe > 0).all(axis=1) | (safe < 0).all(axis=1)
    varies = np.ptp(safe, axis=1) > _SAME * np.abs(safe).max(axis=1, initial=0.0)
    return np.asarray(same_sign & varies)


def _distinct(logs: FloatArray) -> IntArray:
    """The first row of each set of logarithms (T, A) that agree up to shift and factor."""
    centred = logs - logs.mean(axis=1, keepdims=True)
    size = np.sqrt((centred * centred).mean(axis=1, keepdims=True))
    scaled = centred / np.where(size > 0, size, 1.0)
    # The sign of the element farthest from the mean decides which way up the row is compared.
    peak = np.take_along_axis(scaled, np.abs(scaled).argmax(axis=1)[:, np.newaxis], axis=1)
    keys = np.round(scaled * np.sign(peak), 6) + 0.0
    _, first = np.unique(keys, axis=0, return_index=True)
    return np.sort(first)
