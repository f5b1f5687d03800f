"""Sums and differences of columns: the beam search of products, on summands instead of logarithms.

The correlation of (a sum plus or minus a summand) with the ranked target is closed form as it is
for products, so the same search serves. Shapes: S summands, A rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from lpzero.arrays import FloatArray, IntArray
from lpzero.judgement.ranks import rank_targets
from lpzero.scores.columns import ColumnFacts, Columns, is_product
from lpzero.scores.products import Searched, of_columns, search_tables
from lpzero.scores.values import Values
from primitives.formula import Column, Formula, Outer, Sum, add

SIGNS = (Fraction(1), Fraction(-1))
_LEAST = 2


def search_sums(
    columns: Columns, facts: ColumnFacts, targets: FloatArray, rows: IntArray, most: int
) -> Iterator[tuple[float, Formula]]:
    """The best sums of 2 to `most` summands, best first, with their rho on these rows.

    Those that are products are left out.
    """
    summands = facts.summands
    if len(summands) < _LEAST or most < _LEAST:
        return
    values = Values(columns=columns.values).scores(summands)
    varies = np.flatnonzero(np.ptp(values, axis=1) > 0)
    searched = Searched(values[varies][:, rows], rank_targets(targets[rows]))
    for best in search_tables([searched], beam=of_columns(most, SIGNS)):
        powers = best.factors.powers
        formula = sum_of([summands[varies[place]].with_sign(int(sign)) for place, sign in powers])
        if formula is not None:
            yield best.value, formula


def sum_of(parts: Sequence[Formula]) -> Formula | None:
    """The sum of signed parts, up to its sign; None if it is none, repeats a part or is a product.

    >>> from primitives.parser import parse
    >>> str(sum_of([parse("-log(a)"), parse("signed_log(b)")]))
    'sub(signed_log(b), log(a))'
    """
    plain = [part.with_sign(1) for part in parts]
    if len(plain) < _LEAST or len(set(plain)) < len(plain) or all(map(is_product, plain)):
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
