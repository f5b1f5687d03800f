"""The predictor of a discovery: the best guess at a ranking, beside the formula of a paper.

labelled rows: described architectures, the formula's numbers, targets  ->  Predictor
new architectures, described alike                                      ->  Predicted

A prediction is the mean of two normal scores: of the formula's score among those of the labelled
rows, and of a Gaussian process on the features of architectures and the logarithms of terms. It is
in units of the targets' normal scores: 0 is the middle of the labelled rows, 1 a standard deviation
above it. Far from the labelled rows the process says nothing, and the formula's score, whose scale
goes on beyond them, ranks alone. Shapes: n labelled rows, m new ones, F inputs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from lpzero.arrays import BoolArray, FloatArray
from lpzero.scores.features import Features
from lpzero.scores.gaussian import (
    Hyperparameters,
    NormalScale,
    Process,
    Smooth,
    most_likely,
    normal_targets,
    one_thread,
    some_rows,
)
from primitives.formula import Formula

MOST_ROWS = 2000  # of labelled rows that the process is given
MOST_TERMS = 60
SAME = 0.97  # terms whose logarithms correlate so far are one
_MOST_FOR_CHOICE = 300  # rows that length and noise are chosen on
_LENGTHS = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0)
_NOISES = (1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.2, 0.3, 0.5, 0.8)
GRID = tuple(
    Hyperparameters(Smooth(1.0, length), noise)
    for length, noise in itertools.product(_LENGTHS, _NOISES)
)

Described = Mapping[str, float]  # an architecture: its features and its terms' logarithms by name


class Predicted(NamedTuple):
    """Normal scores (m,) and their standard deviations (m,)."""

    scores: FloatArray
    deviations: FloatArray


class ProcessOfRows:
    """A process fitted to described rows (n) and their targets (n,), as normal scores."""

    def __init__(self, rows: Sequence[Described], targets: FloatArray) -> None:
        some = some_rows(len(rows), MOST_ROWS)
        kept = [rows[i] for i in some]
        self.inputs = Features.of(kept)
        self.points, self.targets = self.inputs(kept), normal_targets(targets[some])
        with one_thread():
            self.chosen = most_likely(GRID, self.points, self.targets, _MOST_FOR_CHOICE)
            self.process = Process(*self.chosen, self.points, self.targets)

    def predict(self, rows: Sequence[Described]) -> FloatArray:
        """The expected normal scores (m,) of described rows (m)."""
        with one_thread():
            return self.process.predict(self.inputs(rows))

    def deviations(self, rows: Sequence[Described]) -> FloatArray:
        """The standard deviations (m,) of targets of described rows (m), noise included."""
        with one_thread():
            return _with_noise(self.process.deviations(self.inputs(rows)), self.chosen.noise)


@dataclass(frozen=True, eq=False)
class Predictor:
    """Predicts the normal scores of architectures from their description and a formula's number.

    `terms` are the formulas whose logarithms are inputs, under their text, beside the features. The
    number of the formula is the logarithm of its score, with the score's sign, if the labelled
    rows' scores have one `sign`, and the score itself if not (0); `numbers` (n,) are those of
    labelled rows. `spread` is how far predictions of rows left out were off, in deviations.
    """

    formula: Formula
    terms: tuple[Formula, ...]
    inputs: Features
    chosen: Hyperparameters
    points: FloatArray
    targets: FloatArray
    numbers: FloatArray
    sign: int
    spread: float = 1.0

    @classmethod
    def of(
        cls,
        formula: Formula,
        terms: Sequence[Formula],
        rows: Sequence[Described],
        scores: FloatArray,
        targets: FloatArray,
        spread: float = 1.0,
    ) -> Predictor:
        """The predictor of labelled rows (n) with the formula's scores (n,) and targets (n,)."""
        sign = 1 if (scores > 0).all() else -1 if (scores < 0).all() else 0
        fitted = ProcessOfRows(rows, targets)
        return cls(
            formula,
            tuple(terms),
            fitted.inputs,
            fitted.chosen,
            fitted.points,
            fitted.targets,
            formula_numbers(scores, sign)[some_rows(len(rows), MOST_ROWS)],
            sign,
            spread,
        )

    @cached_property
    def _process(self) -> Process:
        with one_thread():
            return Process(*self.chosen, self.points, self.targets)

    @cached_property
    def _scale(self) -> NormalScale:
        return NormalScale(self.numbers)

    def predict(self, rows: Sequence[Described], scores: FloatArray) -> Predicted:
        """The prediction for described rows (m) with the formula's scores (m,).

        A row without a score, or without the logarithm of a term, has NaN.
        """
        numbers = formula_numbers(scores, self.sign)
        points = self.inputs(rows)
        is_finite = np.isfinite(points).all(axis=1) & np.isfinite(numbers)
        predicted = Predicted(*np.full((2, len(rows)), np.nan))
        # One by one, so that a score does not depend on the rows that are scored together.
        with one_thread():
            for row in np.flatnonzero(is_finite):
                point = points[row : row + 1]
                [process] = self._process.predict(point)
                [deviation] = _with_noise(self._process.deviations(point), self.chosen.noise)
                [of_formula] = self._scale(numbers[row : row + 1])
                predicted.scores[row] = (process + of_formula) / 2
                predicted.deviations[row] = self.spread * deviation
        return predicted

    def mean_scores(self, scores: FloatArray) -> FloatArray:
        """The formula's scores (m,) from those of several seeds (seeds, m), averaged as numbers."""
        numbers = formula_numbers(scores, self.sign).mean(axis=0)
        return np.asarray(self.sign * np.exp(self.sign * numbers) if self.sign else numbers)

    def to_json(self) -> dict[str, Any]:
        """Everything but the formula, as JSON values."""
        kernel = self.chosen.kernel
        assert isinstance(kernel, Smooth), "the grid has nothing else"
        return {
            "terms": [str(term) for term in self.terms],
            "inputs": {
                "names": list(self.inputs.names),
                "centre": self.inputs.centre.tolist(),
                "spread": self.inputs.spread.tolist(),
            },
            "length": kernel.length,
            "noise": self.chosen.noise,
            "points": self.points.tolist(),
            "targets": self.targets.tolist(),
            "numbers": self.numbers.tolist(),
            "sign": self.sign,
            "spread": self.spread,
        }


def _with_noise(deviations: FloatArray, noise: float) -> FloatArray:
    return np.hypot(deviations, math.sqrt(noise))


def formula_numbers(scores: FloatArray, sign: int) -> FloatArray:
    """The logarithms (n,) of scores of that sign, in the scores' order; NaN for other scores.

    With sign 0 the scores themselves.
    """
    if sign == 0:
        return scores
    with np.errstate(all="ignore"):
        return np.where(sign * scores > 0, sign * np.log(np.abs(scores)), np.nan)


def unlike(logs: FloatArray, most: int = MOST_TERMS) -> BoolArray:
    """Which rows (T, n) are kept so that no two correlate at `SAME` or more: the first `most`."""
    centred = logs - logs.mean(axis=1, keepdims=True)
    sizes = np.sqrt((centred * centred).sum(axis=1))
    units = centred / np.where(sizes > 0, sizes, 1.0)[:, np.newaxis]
    kept: list[int] = []
    for row in np.flatnonzero(sizes > 0).tolist():
        if len(kept) < most and (np.abs(units[kept] @ units[row]) < SAME).all():
            kept.append(row)
    is_kept = np.zeros(len(logs), dtype=np.bool_)
    is_kept[kept] = True
    return is_kept
