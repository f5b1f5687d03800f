"""What explains the targets of a search's trainings: a formula of counts, and a predictor.

trained architectures, their targets  ->  the formula, the rho of both on rows left out

Nothing here guides a search. The columns are the counters and the features of architectures, so no
network is run. The level of the formula is cross-validated as in `lpzero discover` on columns, and
the predictor (a Gaussian process on the same numbers, its mean with the formula) on the same folds.
Levels are a single column and products of powers of columns: on a few rows more levels find more in
noise.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.discover.column_levels import column_levels
from lpzero.discover.levels import LevelChoice, choose_level, influence, standard_error
from lpzero.judgement import counters
from lpzero.scores.column_features import MAIN
from lpzero.scores.features import describe_quickly
from lpzero.scores.gaussian import NormalScale
from lpzero.scores.predictor import ProcessOfRows
from primitives.errors import FormulaError
from primitives.formula import Column
from spaces.base import Space

LEAST_ROWS = 10  # trainings with a target; folds of fewer have one or two rows


def explanation(space: Space[Any], archs: Sequence[Any], targets: FloatArray) -> dict[str, Any]:
    """The formula, and what cross-validation expects of it and of the predictor; {} if nothing.

    `archs` (n) were trained, `targets` (n,) are finite.
    """
    if len(archs) < LEAST_ROWS or np.ptp(targets) == 0:
        return {}
    columns = _columns(space, archs)
    rows = np.arange(len(archs))
    levels = [level for level in column_levels(columns) if level.kind == MAIN]
    choice = choose_level(levels, targets, rows, rows.tolist(), 0) if columns else None
    if choice is None:
        return {}
    [best] = choice.level.best(targets, rows, 1)
    found = choice.expectation(best.value)
    return {
        "n": len(archs),
        "formula": str(best.formula),
        "level": choice.chosen,
        "rho": found["rho"],
        "error": found["error"],
        "fit": found["fit"],
        "warning": found["warning"],
        "predictor": _predictor(columns, targets, choice),
    }


def _columns(space: Space[Any], archs: Sequence[Any]) -> dict[str, FloatArray]:
    """The counters and features (n,) that differ, by names that a formula may have."""
    every = {
        name: [counters.get(name)(space, arch) for arch in archs] for name in counters.quick(space)
    }
    described = describe_quickly(space, archs)
    for feature in dict.fromkeys(name for row in described for name in row):
        if feature not in every:
            name = re.sub(r"[^a-z0-9_]+", "-", feature.lower()).strip("-")
            every.setdefault(name, [row.get(feature, 0.0) for row in described])
    columns = {name: np.array(values, dtype=np.float64) for name, values in every.items()}
    return {name: of for name, of in columns.items() if _is_usable(name, of)}


def _is_usable(name: str, values: FloatArray) -> bool:
    try:
        Column(name)
    except FormulaError:
        return False
    return bool(np.ptp(values) > 0)


def _predictor(
    columns: dict[str, FloatArray], targets: FloatArray, choice: LevelChoice
) -> dict[str, float]:
    """The cross-validated rho of the predictor and its standard error."""
    rows = [dict(zip(columns, of, strict=True)) for of in zip(*columns.values(), strict=True)]
    rhos, moves = [], []
    for folds in choice.folded:
        predicted = np.zeros(len(targets))
        for fitted_on, left_out, scores in folds:
            process = ProcessOfRows([rows[i] for i in fitted_on], targets[fitted_on])
            of_process = process.predict([rows[i] for i in left_out])
            of_formula = NormalScale(scores[fitted_on])(scores[left_out])
            predicted[left_out] = (of_process + of_formula) / 2
        measured = influence(predicted, targets)
        rhos.append(measured.rho)
        moves.append(measured.moves)
    return {"rho": float(np.mean(rhos)), "error": standard_error(np.mean(moves, axis=0))}


def sentence(found: dict[str, Any]) -> str:
    """The explanation in one line."""
    predictor, warning = found["predictor"], found["warning"]
    return (
        f"what explains the {found['n']} trainings: {found['formula']}, cross-validated rho"
        f" {found['rho']:.3f} ± {found['error']:.3f}; a predictor on counts and choices"
        f" {predictor['rho']:.3f} ± {predictor['error']:.3f}{f' ({warning})' if warning else ''}"
    )
