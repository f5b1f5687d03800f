"""An exported predictor as a proxy: scores and standard deviations of architectures of its space.

The formula and the terms are read from sketches, averaged over as many seeds as in the campaign
that it comes from; the features of architectures need no network.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.proxies.base import Proxy
from lpzero.proxies.formula import FormulaProxy, column_values, filled
from lpzero.scores.features import describe
from lpzero.scores.predictor import Predicted, Predictor
from lpzero.sketches.sketch import SketchOptions
from primitives.formula import Formula
from spaces.base import Space

if TYPE_CHECKING:
    from lpzero.proxies.measurements import Context, Measurements


@dataclass(frozen=True, slots=True, eq=False)
class PredictorProxy(Proxy):
    """A predictor; its networks have the seed of the options and the next ones, as many as given.

    `chosen_on` lists the tables that it was fitted to, as in `FormulaProxy`.
    """

    name: str
    predictor: Predictor
    space: str
    options: SketchOptions
    n_seeds: int = 1
    chosen_on: tuple[tuple[str, int | None], ...] = ()

    @property
    def parts(self) -> tuple[Proxy, ...]:
        """The formula and the terms."""
        return tuple(map(self._part, self._formulas))

    @property
    def _formulas(self) -> tuple[Formula, ...]:
        return (self.predictor.formula, *self.predictor.terms)

    def all_sketching(self, context: Context) -> tuple[SketchOptions, ...]:
        if not self.reads_sketches:
            return ()
        seeds = range(self.n_seeds)
        return tuple(self._part(self.predictor.formula, s).sketching(context) for s in seeds)

    def _part(self, formula: Formula, seed: int = 0) -> FormulaProxy:
        options = self.options
        options = replace(options, seed=options.seed + seed, batch_seed=options.batch_seed + seed)
        return FormulaProxy(str(formula), formula, options=options)

    @property
    def definition(self) -> str:
        n_terms = len(self.predictor.terms)
        n_features = len(self.predictor.inputs.names) - n_terms
        return (
            f"mean of the normal scores of {self.predictor.formula} and of a Gaussian process on"
            f" {n_features} features and {n_terms} terms"
        )

    @property
    def only_spaces(self) -> str:
        return f"it reads features of architectures of space {self.space}, and a model has none"

    @property
    def reads_sketches(self) -> bool:
        return any(formula.statistics for formula in self._formulas)

    @property
    def needs_sketches(self) -> bool:
        """Whether it reads networks: it does so with seeds of its own."""
        return self.reads_sketches

    def applies_to(self, space: Space[Any]) -> bool:
        """Whether the space is the one it was fitted in."""
        return space.name == self.space

    def score(
        self, space: Space[Any], archs: Sequence[Any], measurements: Measurements
    ) -> FloatArray:
        return self.predict(space, archs, measurements).scores

    def predict(
        self, space: Space[Any], archs: Sequence[Any], measurements: Measurements
    ) -> Predicted:
        """The scores (n,) of the architectures and their standard deviations (n,)."""
        if not len(archs):
            return Predicted(np.empty(0), np.empty(0))
        values = self._values(space, archs, measurements)
        names = [str(term) for term in self.predictor.terms]
        with np.errstate(all="ignore"):
            logs = np.log(np.abs(values[:, 1:])).mean(axis=0)
        rows = [
            {**of_arch, **dict(zip(names, of_terms, strict=True))}
            for of_arch, of_terms in zip(describe(space, archs), logs.T.tolist(), strict=True)
        ]
        return self.predictor.predict(rows, self.predictor.mean_scores(values[:, 0]))

    def _values(
        self, space: Space[Any], archs: Sequence[Any], measurements: Measurements
    ) -> FloatArray:
        """The values (seeds, 1 + T, n) of the formula and the terms; NaN where there are none."""
        if not self.reads_sketches:
            scores = [part.score(space, archs, measurements) for part in self.parts]
            return np.stack([scores] * self.n_seeds)
        columns: dict[str, Proxy] = {}
        for formula in self._formulas:
            columns |= self._part(formula).columns()
        beside = column_values(columns, space, archs, measurements)
        found = np.full((self.n_seeds, len(self._formulas), len(archs)), np.nan)
        for seed, of_seed in enumerate(found):
            options = self._part(self.predictor.formula, seed).sketching(measurements.context)
            values, usable = measurements.values(space, archs, options)
            known = {name: filled(of[usable]) for name, of in beside.items()}
            of_seed[:, usable] = values.beside(known).scores(self._formulas)
        for of_column in beside.values():
            found[:, :, ~np.isfinite(of_column)] = np.nan
        return found
