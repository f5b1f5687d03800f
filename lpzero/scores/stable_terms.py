"""Terms whose values repeat: networks with other weights on another batch rank alike by them.

A product of such terms mostly repeats too, and the search meets fewer terms that fit by chance. No
target is needed, so all rows count.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lpzero.judgement.stability import agreement
from lpzero.scores.terms import (
    TermLanguage,
    TermSource,
    TermTable,
    shared_term_tables,
    values_of,
)


class TwoSeeds(NamedTuple):
    """What one table's terms are read from, with two seeds; the second may be missing."""

    first: TermSource
    second: TermSource | None


def stable_term_tables(
    tables: Sequence[TwoSeeds], language: TermLanguage, threshold: float
) -> list[TermTable]:
    """The terms that all tables share and whose values repeat on each, one table for each.

    Where a table has no second seed its terms count as stable.
    """
    shared = shared_term_tables([table.first for table in tables], language)
    is_stable = np.ones(len(shared[0]), dtype=np.bool_)
    for terms, table in zip(shared, tables, strict=True):
        if table.second is not None:
            again = np.abs(values_of(terms.terms, table.second))
            is_stable &= agreement(terms.values, again) >= threshold
    return [terms.of(is_stable) for terms in shared]
