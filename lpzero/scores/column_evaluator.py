"""Scores of formulas of columns alone: no sketch, no network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.errors import InputError
from lpzero.scores.score_trees import formula_values
from lpzero.scores.stacks import NonFiniteError, finite
from primitives.formula import Atom, Column, Formula
from primitives.rejection import NON_FINITE, Rejected

_NO_NETWORK = Rejected("missing-network", "the formula reads a network, and there is none")
_UNDEFINED = Rejected(NON_FINITE, "an operation is not defined for a value of a column")


class ColumnEvaluator:
    """Scores of formulas on rows with these columns (A,) by name."""

    def __init__(self, columns: Mapping[str, FloatArray]) -> None:
        self._columns = columns

    def score(self, formula: Formula) -> FloatArray | Rejected:
        """The formula's scores (A,), or why it has none."""
        if formula.terms:
            return _NO_NETWORK
        with np.errstate(all="ignore"):
            try:
                return finite(formula.sign * formula_values(formula, self._value_of))
            except NonFiniteError:
                return _UNDEFINED

    def scores(self, formulas: Sequence[Formula]) -> list[FloatArray | Rejected]:
        """The scores of each formula."""
        return [self.score(formula) for formula in formulas]

    def _value_of(self, atom: Atom) -> FloatArray:
        assert isinstance(atom, Column), "a formula of columns has no terms"
        return known_column(atom.name, self._columns)


def known_column(name: str, columns: Mapping[str, FloatArray]) -> FloatArray:
    """The column (A,) of that name; raises InputError if there is none."""
    if name not in columns:
        known = ", ".join(sorted(columns)) or "none"
        raise InputError(f"the formula names column {name!r}; columns given: {known}")
    return finite(np.asarray(columns[name], dtype=np.float64))
