"""Ridge regression and the predictor of columns."""

from __future__ import annotations

import numpy as np
import pytest

from lpzero.arrays import FloatArray
from lpzero.judgement.correlation import spearman
from lpzero.scores import boosted_trees, column_predictor
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


@pytest.fixture
def few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boosted_trees, "STAGES", (5, 20))


FOLDS = [(np.setdiff1d(ROWS, part), part) for part in np.array_split(ROWS, 4)]


@pytest.mark.usefixtures("few_trees")
def test_the_predictor_takes_from_each_part_what_holds_on_rows_left_out() -> None:
    rng = np.random.default_rng(5)
    noise, perfect = rng.standard_normal(N), LINEAR**3
    for formula, least in ((noise, 0.9), (perfect, 0.99)):
        folds = [(known, left, formula) for known, left in FOLDS]
        scores = predictor_scores(COLUMNS, ROWS, LINEAR, formula, folds)
        assert spearman(scores[TEST], LINEAR[TEST]) > least
    assert scores.std() == pytest.approx(1.0, abs=0.3)


@pytest.mark.usefixtures("few_trees")
def test_no_target_of_a_test_row_is_read_by_the_predictor() -> None:
    hidden = np.where(np.arange(N) < 160, CURVED, np.nan)
    folds = [(known, left, LINEAR) for known, left in FOLDS]
    first, second = (
        predictor_scores(COLUMNS, ROWS, targets, LINEAR, folds) for targets in (hidden, CURVED)
    )
    assert np.array_equal(first, second)


def test_trees_answer_what_is_no_sum() -> None:
    """The product of two signs, which no single column explains."""
    rng = np.random.default_rng(2)
    points = rng.standard_normal((600, 3))
    target = np.sign(points[:, 0] * points[:, 1])
    staged = boosted_trees.staged_scores(points, np.arange(400), target[:400])
    errors = [float(np.mean((scores[400:] - target[400:]) ** 2)) for scores in staged]
    assert len(staged) == len(boosted_trees.STAGES)
    assert errors[-1] < 0.2  # of 1: a sum of functions of one column each explains nothing


def test_a_question_is_the_best_of_all() -> None:
    """Against every column and cut, one by one, for trees of one question."""
    rng = np.random.default_rng(6)
    bins, target = rng.integers(0, boosted_trees._BINS, (1, 50)), rng.standard_normal(50)
    target += bins[0] > 40
    [(column, at), *_] = boosted_trees._questions(bins, target, rng)

    def explained(cut: int) -> float:
        sides = [target[bins[0] > cut], target[bins[0] <= cut]]
        return sum(float(of.sum() ** 2 / (len(of) + boosted_trees._PRIOR)) for of in sides)

    assert column == 0
    assert explained(at) == pytest.approx(max(map(explained, range(boosted_trees._BINS))))
