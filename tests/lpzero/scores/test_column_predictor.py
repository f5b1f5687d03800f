"""Ridge regression and the predictor of columns."""

from __future__ import annotations

import numpy as np
import pytest

from lpzero.arrays import FloatArray
from lpzero.judgement.correlation import spearman
from lpzero.scores import column_predictor
from lpzero.scores.column_predictor import predictor_scores, process_scores, ridge_scores
from lpzero.scores.gaussian import Rough, Smooth, Sum

N, ROWS, TEST = 240, np.arange(160), np.arange(160, 240)
RNG = np.random.default_rng(1)
COLUMNS = {
    "useful": np.exp(RNG.standard_normal(N)),
    "useless": RNG.standard_normal(N),
    "same": np.ones(N),
    "other": -np.exp(RNG.standard_normal(N)),
}
LINEAR = np.log(COLUMNS["useful"]) - np.log(-COLUMNS["other"])
CURVED = np.log(COLUMNS["useful"]) ** 2


def test_ridge_ranks_what_is_linear_in_logarithms() -> None:
    scores = ridge_scores(COLUMNS, ROWS, LINEAR)
    assert spearman(scores[TEST], LINEAR[TEST]) > 0.99


def test_the_process_ranks_what_ridge_cannot() -> None:
    ridge = spearman(ridge_scores(COLUMNS, ROWS, CURVED)[TEST], CURVED[TEST])
    process = spearman(process_scores(COLUMNS, ROWS, CURVED)[TEST], CURVED[TEST])
    assert process > 0.9 > ridge + 0.4


def test_the_process_takes_the_shape_that_drew_the_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    """A random walk is rough, a noisy sine is smooth: the evidence tells them apart."""
    rng = np.random.default_rng(3)
    walk = np.cumsum(rng.standard_normal(N))
    smooth = np.sin(np.arange(N) / 40) + 0.6 * rng.standard_normal(N)
    columns = {"along": np.exp(np.linspace(0, 3, N))}
    shapes: list[type] = []

    class Recorded(column_predictor.Process):
        def predict(self, points: FloatArray, prior: float | FloatArray = 0.0) -> FloatArray:
            assert isinstance(self.kernel, Sum)
            shapes.append(type(self.kernel.parts[1]))
            return super().predict(points, prior)

    monkeypatch.setattr(column_predictor, "Process", Recorded)
    for targets in (walk, smooth):
        process_scores(columns, np.arange(N), targets)
    assert shapes == [Rough, Smooth]


def test_no_target_of_other_rows_is_read() -> None:
    hidden = np.where(np.arange(N) < 160, LINEAR, np.nan)
    for scores in (ridge_scores, process_scores):
        assert np.array_equal(scores(COLUMNS, ROWS, hidden), scores(COLUMNS, ROWS, LINEAR))


def test_the_predictor_is_the_mean_of_formula_and_process() -> None:
    formula = COLUMNS["useful"]
    mean = predictor_scores(COLUMNS, ROWS, LINEAR, formula)
    assert spearman(mean[TEST], LINEAR[TEST]) > spearman(formula[TEST], LINEAR[TEST])
    assert mean.std() == pytest.approx(1.0, abs=0.3)
