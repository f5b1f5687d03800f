"""Columns: numbers per architecture that formulas may name beside statistics and sizes.

headings of a table, scores of proxies  ->  Columns: values (A,) by the name they have in formulas

A column enters a product as its magnitude, if it is never zero, and a sum as its logarithm or, if
it may change sign, as sgn(x)·log(1 + |x|). As ranks, a column is replaced by its share of the
rows that are not above it, and its name says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np

from lpzero.arrays import FloatArray, IntArray
from lpzero.errors import InputError
from lpzero.judgement.ranks import rank
from primitives.errors import did_you_mean
from primitives.formula import COLUMN_NAME, Column, Formula, Outer, Sum, add, is_reserved

AS_LOG, AS_RANKS = "log", "ranks"
RANK_OF = "rank-of-"  # before the name of a column that stands for its ranks
_LOGARITHMS: tuple[tuple[str, ...], ...] = (("log",), ("sqrt", "log"), ("square", "log"))
_OF_RANKS: tuple[tuple[str, ...], ...] = ((), ("sqrt",), ("square",))
_LEAST = 2  # parts of a sum
V = TypeVar("V")


@dataclass(frozen=True, eq=False)
class Columns:
    """Values (A,) by the column's name in formulas, all finite; some may be counters."""

    values: Mapping[str, FloatArray] = field(default_factory=dict)
    counters: frozenset[str] = frozenset()

    @cached_property
    def positive(self) -> frozenset[str]:
        """The columns that are above zero in every row."""
        return frozenset(name for name, of in self.values.items() if (of > 0).all())

    @cached_property
    def without_zero(self) -> frozenset[str]:
        """The columns whose magnitude has a logarithm in every row."""
        return frozenset(name for name, of in self.values.items() if (of != 0).all())

    @property
    def beside_counters(self) -> dict[str, FloatArray]:
        """The columns that are not counters."""
        return {name: of for name, of in self.values.items() if name not in self.counters}

    def at(self, rows: IntArray | Sequence[int] | None) -> dict[str, FloatArray]:
        """The values of these rows, all if None."""
        picked = slice(None) if rows is None else np.asarray(rows)
        return {name: of[picked] for name, of in self.values.items()}


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """What is known of the columns of a campaign on every one of its tables."""

    names: tuple[str, ...] = ()
    positive: frozenset[str] = frozenset()
    without_zero: frozenset[str] = frozenset()
    counters: frozenset[str] = frozenset()

    @property
    def factors(self) -> tuple[str, ...]:
        """The columns that may be factors of a product."""
        return tuple(name for name in self.names if name in self.without_zero)

    @property
    def summands(self) -> tuple[Formula, ...]:
        """What sums are made of: the columns under the operations that put them on one scale.

        Counters are left to products: their logarithms add up to one.
        """
        names = [name for name in self.names if name not in self.counters]
        return tuple(part for name in names for part in self._summands(name))

    def _summands(self, name: str) -> list[Formula]:
        plain = Formula.of_base(Column(name))
        if name.startswith(RANK_OF):
            return [_under(plain, chain) for chain in _OF_RANKS]
        summands: list[Formula] = [plain.apply("signed_log")]
        if name in self.without_zero:
            size = plain if name in self.positive else plain.apply("abs")
            summands += [_under(plain if "square" in c else size, c) for c in _LOGARITHMS]
        return summands


NO_COLUMNS = ColumnFacts()


def common_facts(columns: Sequence[Columns]) -> ColumnFacts:
    """What holds for the columns that every table has."""
    if not columns:
        return NO_COLUMNS
    first, *others = columns
    names = tuple(name for name in first.values if all(name in of.values for of in others))
    return ColumnFacts(
        names,
        frozenset.intersection(*(of.positive for of in columns)),
        frozenset.intersection(*(of.without_zero for of in columns)),
        frozenset.intersection(*(of.counters for of in columns)),
    )


def sum_of(parts: Sequence[Formula]) -> Formula | None:
    """The sum of signed parts, up to its sign; None if it is none, repeats a part or is a product.

    >>> from primitives.parser import parse
    >>> str(sum_of([parse("-log(a)"), parse("signed_log(b)")]))
    'sub(signed_log(b), log(a))'
    """
    plain = [part.with_sign(1) for part in parts]
    if len(plain) < _LEAST or len(set(plain)) < len(plain) or all(map(_is_product, plain)):
        return None
    return add(sorted(parts, key=lambda part: str(part.with_sign(1)))).with_sign(1)


def parts_of(formula: Formula) -> list[Formula] | None:
    """The signed parts of a sum, the formula's own sign left out; None if it is not a sum."""
    first = formula.powers[0]
    if len(formula.powers) > 1 or first.exponent != 1 or not isinstance(first.base, Sum):
        return None
    return list(first.base.parts)


def is_summand(formula: Formula) -> bool:
    """Whether the formula is one column under operations on one number."""
    if len(formula.powers) > 1:
        return False
    base = formula.powers[0].base
    return isinstance(base, Column) or (isinstance(base, Outer) and is_summand(base.operand))


def _is_product(summand: Formula) -> bool:
    """Whether the summand is the logarithm of a power, so that sums of such are products."""
    first, *others = summand.powers
    is_log = isinstance(first.base, Outer) and first.base.operation == "log"
    return is_log and not others and first.exponent == 1


def formula_names(headings: Iterable[str]) -> dict[str, str]:
    """The name in formulas of each heading: lower-case words; words of the language get `_column`.

    >>> formula_names(["Layer 1 Hidden Covariance", "params", "grad_norm"])
    {'Layer 1 Hidden Covariance': 'layer_1_hidden_covariance', 'params': 'params_column', \
'grad_norm': 'grad_norm'}
    """
    names: dict[str, str] = {}
    for heading in headings:
        name = heading.strip()
        if COLUMN_NAME.fullmatch(name) is None:
            name = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or "column"
            name = f"c_{name}" if name[0].isdigit() else name
        names[heading] = f"{name}_column" if is_reserved(name) else name
    owners: dict[str, str] = {}
    for heading, name in names.items():
        if name in owners:
            raise InputError(
                f"the columns {owners[name]!r} and {heading!r} would both be called {name} in"
                " formulas; rename one"
            )
        owners[name] = heading
    return names


def select(available: Mapping[str, V], wanted: Sequence[str], table: str) -> dict[str, V]:
    """The wanted columns of a table by their names in formulas; raises InputError without one.

    A column is wanted by its heading or by its name in formulas.
    """
    names = formula_names(available)
    by_either = {name: heading for heading, name in names.items()} | {h: h for h in available}
    for column in wanted:
        if column not in by_either:
            hint = did_you_mean(column, sorted(by_either)) if by_either else "it has none"
            raise InputError(f"table {table} has no column {column!r}; {hint}")
    return {names[by_either[column]]: available[by_either[column]] for column in wanted}


def as_ranks(columns: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Each column as the rank of its rows divided by their number, under a name that says so."""
    return {f"{RANK_OF}{name}": rank(of) / len(of) for name, of in columns.items()}


def _under(formula: Formula, chain: Sequence[str]) -> Formula:
    for operation in chain:
        formula = formula.apply(operation)
    return formula
