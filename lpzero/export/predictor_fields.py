"""The fields of a predictor in an exported file or a run's directory, checked one by one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lpzero.errors import InputError
from lpzero.export.fields import Fields, check_number, check_numbers, check_text
from lpzero.export.record import ExportedPredictor, check_terms
from lpzero.scores.features import Features
from lpzero.scores.gaussian import Hyperparameters, Smooth
from lpzero.scores.predictor import MOST_ROWS, MOST_TERMS, Predictor
from lpzero.sketches.sketch import SketchOptions
from primitives.formula import Formula
from primitives.parser import parse

_MOST_INPUTS = 1000
_MOST_SEEDS = 100
_LARGEST_POINT = 1e6  # in standard deviations of labelled rows
_BOUNDS = {"length": (1e-3, 1e6), "noise": (1e-9, 1e6), "spread": (1e-9, 1e9)}


def read(fields: Fields, formula: Formula, space: str, options: SketchOptions) -> ExportedPredictor:
    """The predictor in the fields, which are those of `Predictor.to_json` and `n_seeds`."""
    where = fields.where
    terms = fields.items("terms")
    if len(terms) > MOST_TERMS:
        raise InputError(f"{where}: there are {len(terms)} terms, at most {MOST_TERMS} are allowed")
    scaling = fields.inner("inputs")
    names = [check_text(name, f"{scaling.where}: names") for name in scaling.items("names")]
    if len(names) > _MOST_INPUTS or len(set(names)) < len(names):
        raise InputError(f"{scaling.where}: names are too many or not distinct")
    n_inputs = len(names)
    centre, spread = (
        np.array(check_numbers(scaling.take(name), f"{scaling.where}: {name}", n_inputs))
        for name in ("centre", "spread")
    )
    scaling.done()
    if not (spread > 0).all():
        raise InputError(f"{scaling.where}: spread has numbers that are not above 0")
    rows = fields.items("points")
    n = len(rows)
    if not 2 <= n <= MOST_ROWS:
        raise InputError(f"{where}: points has {n:,} rows, expected 2 to {MOST_ROWS:,}")
    points = np.array(
        [check_numbers(row, f"{where}: points", n_inputs, _LARGEST_POINT) for row in rows]
    ).reshape(n, n_inputs)
    targets, numbers = (
        np.array(check_numbers(fields.take(name), f"{where}: {name}", n))
        for name in ("targets", "numbers")
    )
    length, noise, off = (_bounded(fields, name) for name in _BOUNDS)
    sign, n_seeds = fields.integer("sign", -1), fields.integer("n_seeds", 1)
    if sign > 1 or n_seeds > _MOST_SEEDS:
        raise InputError(f"{where}: sign or n_seeds is too large")
    fields.done()
    raw = centre + spread * points
    inputs = Features(tuple(names), centre, spread, raw.min(axis=0), raw.max(axis=0))
    chosen = Hyperparameters(Smooth(1.0, length), noise)
    predictor = Predictor(
        formula,
        tuple(_term(text, where) for text in terms),
        inputs,
        chosen,
        points,
        targets,
        numbers,
        sign,
        off,
    )
    return ExportedPredictor(predictor, space, options, n_seeds)


def _bounded(fields: Fields, name: str) -> float:
    least, most = _BOUNDS[name]
    value = check_number(fields.take(name), f"{fields.where}: {name}", most)
    if not math.isfinite(value) or value < least:
        raise InputError(f"{fields.where}: {name} is {value:g}, expected at least {least:g}")
    return value


def _term(text: Any, where: str) -> Formula:
    """A formula of one term or column."""
    if not isinstance(text, str):
        raise InputError(f"{where}: a term is not a text")
    formula = parse(text)
    if len(formula.atoms) != 1 or formula != Formula.of_base(formula.atoms[0]):
        raise InputError(f"{where}: {text!a:.60} is not a single term or column")
    check_terms(formula)
    return formula
