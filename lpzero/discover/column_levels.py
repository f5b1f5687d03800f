"""The levels of formulas of columns alone: how many features of columns a weighted sum has.

columns  ->  column_levels: the levels, simplest first, that `choose_level` cross-validates

Simplest first: the best single column; a product of powers of two columns or more (a weighted sum
of logarithms); a weighted sum of columns under operations; a weighted sum of products of two of
these. Every level is searched on the rows that it is given alone: the centres and weights that its
formulas have are fitted there. Shapes: A rows of the table, n rows searched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from lpzero.arrays import BoolArray, FloatArray, IntArray
from lpzero.judgement.correlation import spearman_many
from lpzero.judgement.ranks import rank_targets
from lpzero.scores.column_features import MAIN, PAIRS, SINGLE, Features, features_of, with_pairs
from lpzero.scores.values import Values
from lpzero.scores.weighted_sums import Searched, fit_weights, residuals, search
from primitives.formula import Formula

# Name, features, how many of them: simplest first.
LEVELS = (
    ("column", MAIN, 1),
    ("powers of 2", MAIN, 2),
    ("powers of 4", MAIN, 4),
    ("powers of 8", MAIN, 8),
    ("sum of 4", SINGLE, 4),
    ("sum of 8", SINGLE, 8),
    ("products, 2", PAIRS, 2),
    ("products, 4", PAIRS, 4),
    ("products, 8", PAIRS, 8),
    ("products, 12", PAIRS, 12),
    ("products, 16", PAIRS, 16),
    ("products, 24", PAIRS, 24),
)
MOST_ROWS = 2000  # that are searched: of more rows a sample is, and weights are fitted on all
_ROWS_OF_A_FEATURE = 15  # a sum of more features than rows allow is that of as many
_REMEMBERED = 40  # searches: every level asks for those of all folds


class FittedSum(NamedTuple):
    """A formula with its rho on the rows that it was fitted on."""

    formula: Formula
    value: float


@dataclass(frozen=True, eq=False)
class ColumnSearch:
    """Searches the columns (A,) of a table; the last few searches are remembered."""

    columns: Mapping[str, FloatArray]
    seed: int = 0
    _memory: dict[Any, tuple[Features, Searched]] = field(default_factory=dict, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {"columns": self.columns, "seed": self.seed, "_memory": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)

    def best(
        self, kind: str, size: int, targets: FloatArray, rows: IntArray, n: int
    ) -> list[FittedSum]:
        """The n best formulas of so many features of a kind on the rows, best first."""
        features, searched = self._searched(kind, targets, rows)
        sums = (
            searched.by_size[min(size, len(searched.by_size)) - 1][:n] if searched.by_size else ()
        )
        formulas = []
        for of in sums:
            weights: Sequence[float] = of.weights
            if len(rows) > MOST_ROWS:
                weights = self._refitted(features, of.members, targets, rows)
            formulas.append(features.weighted(of.members, weights))
        if not formulas:
            return []
        scores = self.values.scores(formulas)[:, rows]
        rhos = spearman_many(scores, rank_targets(targets[rows])).values
        return [FittedSum(formulas[i], float(rhos[i])) for i in np.argsort(-rhos, kind="stable")]

    @property
    def evaluated(self) -> int:
        """How many formulas the remembered searches ranked exactly."""
        return sum(searched.evaluated for _, searched in self._memory.values())

    @property
    def values(self) -> Values:
        """The scores of formulas on all rows."""
        return Values(columns=self.columns)

    def _searched(
        self, kind: str, targets: FloatArray, rows: IntArray
    ) -> tuple[Features, Searched]:
        key = (kind, rows.tobytes(), targets[rows].tobytes())
        if key not in self._memory:
            if len(self._memory) >= _REMEMBERED:
                del self._memory[next(iter(self._memory))]
            most = max(size for _, of, size in LEVELS if of == kind)
            sample = rows
            if len(rows) > MOST_ROWS:
                drawn = np.random.default_rng(self.seed)
                sample = np.sort(drawn.choice(rows, MOST_ROWS, replace=False))
            features = features_of(self.columns, sample, MAIN if kind == MAIN else SINGLE)
            ranks = rank_targets(targets[sample])
            if kind == PAIRS and len(features):
                features = with_pairs(features, residuals(features, ranks))
            most = min(most, max(1, len(sample) // _ROWS_OF_A_FEATURE))
            searched = search(features, ranks, most)
            no_values = replace(features, values=np.empty((len(features), 0)))
            self._memory[key] = no_values, searched
        return self._memory[key]

    def _refitted(
        self, features: Features, members: Sequence[int], targets: FloatArray, rows: IntArray
    ) -> list[float]:
        """The weights of standardised features, fitted on all rows."""
        scores = self.values.scores([features.formula(member) for member in members])[:, rows]
        places = np.array(members)
        scores -= features.means[places, np.newaxis]
        scores /= features.spreads[places, np.newaxis]
        return list(map(float, fit_weights(scores, rank_targets(targets[rows]))))


@dataclass(frozen=True, eq=False)
class ColumnLevel:
    """Formulas of so many features of a kind."""

    name: str
    kind: str
    size: int
    search: ColumnSearch

    @property
    def n_terms(self) -> int:
        """The most features that a formula has."""
        return self.size

    def best(self, targets: FloatArray, rows: IntArray, n: int) -> list[FittedSum]:
        """The n best formulas on the rows, each with the sign that suits them."""
        return self.search.best(self.kind, self.size, targets, rows, n)

    def scores(self, fitted: FittedSum) -> FloatArray:
        """The formula's scores (A,)."""
        return np.asarray(self.search.values.scores([fitted.formula])[0])

    def formula(self, fitted: FittedSum) -> Formula:
        return fitted.formula

    def admits(self, formulas: Sequence[Formula], *scores: FloatArray) -> BoolArray:
        """Which formulas may win beside the level's own: all read columns alone."""
        return np.ones(len(formulas), dtype=np.bool_)


def column_levels(columns: Mapping[str, FloatArray], seed: int = 0) -> list[ColumnLevel]:
    """The levels of these columns, simplest first."""
    made = partial(ColumnLevel, search=ColumnSearch(columns, seed))
    few = len(columns)
    return [
        made(name, kind, size)
        for name, kind, size in LEVELS
        if kind != MAIN or size <= few or size == 1
    ]
