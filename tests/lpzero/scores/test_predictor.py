"""The predictor against its definition, written out with plain inverses and quantiles."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm, rankdata

from lpzero.scores.gaussian import Smooth
from lpzero.scores.predictor import GRID, Predictor, formula_numbers, unlike
from primitives.parser import parse

N = 30


def labelled(seed: int = 0, n: int = N) -> tuple[list[dict[str, float]], Any, Any]:
    """Described rows of two features and a term, the formula's scores, targets."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    rows = [dict(zip(("a", "b", "sum(W)"), row, strict=True)) for row in x.tolist()]
    targets = x[:, 0] + np.sin(2 * x[:, 1]) + 0.1 * rng.normal(size=n)
    return rows, np.exp(x[:, 0] + 0.5 * rng.normal(size=n)), targets


def predictor(seed: int = 0, **changes: Any) -> Predictor:
    rows, scores, targets = labelled(seed)
    found = Predictor.of(parse("sum(G)"), [parse("sum(W)")], rows, scores, targets)
    return replace(found, **changes)


def test_a_prediction_is_the_mean_of_both_normal_scores() -> None:
    rows, scores, targets = labelled()
    found = predictor(spread=1.5)
    raw = np.array([list(row.values()) for row in rows])
    x = (raw - raw.mean(axis=0)) / raw.std(axis=0)
    y = norm.ppf((rankdata(targets) - 0.5) / N)

    def covariance(a: Any, b: Any, length: float) -> Any:
        far = ((a[:, np.newaxis] - b) ** 2).sum(axis=2)
        return np.exp(-far / (2 * 3 * length**2))

    def evidence(length: float, noise: float) -> float:
        K = covariance(x, x, length) + noise * np.eye(N)
        return float(-0.5 * y @ np.linalg.solve(K, y) - 0.5 * np.linalg.slogdet(K)[1])

    length, noise = max(
        ((one.kernel.length, one.noise) for one in GRID),  # type: ignore[attr-defined]
        key=lambda pair: evidence(*pair),
    )
    assert found.chosen == (Smooth(1.0, length), noise)
    new = raw[:5] + 0.3
    at = (new - raw.mean(axis=0)) / raw.std(axis=0)
    inverse = np.linalg.inv(covariance(x, x, length) + noise * np.eye(N))
    cross = covariance(at, x, length)
    of_formula = np.interp(
        np.log(scores[:5]), np.sort(np.log(scores)), norm.ppf((np.arange(N) + 0.5) / N)
    )
    described = [dict(zip(rows[0], row, strict=True)) for row in new.tolist()]
    predicted = found.predict(described, scores[:5])
    np.testing.assert_allclose(predicted.scores, (cross @ inverse @ y + of_formula) / 2, rtol=1e-8)
    variances = 1 + noise - np.einsum("mi,ij,mj->m", cross, inverse, cross)
    np.testing.assert_allclose(predicted.deviations, 1.5 * np.sqrt(variances), rtol=1e-6)


def test_a_score_does_not_depend_on_the_rows_scored_together() -> None:
    rows, scores, _ = labelled()
    found = predictor()
    together = found.predict(rows, scores)
    for row in range(N):
        alone = found.predict(rows[row : row + 1], scores[row : row + 1])
        assert alone.scores[0] == together.scores[row]
        assert alone.deviations[0] == together.deviations[row]


def test_rows_without_a_number_have_no_score() -> None:
    rows, scores, _ = labelled()
    broken = [{**rows[0], "sum(W)": np.nan}, rows[1], rows[2], rows[3]]
    given = np.array([scores[0], np.nan, -1.0, scores[3]])
    found = predictor().predict(broken, given).scores
    assert np.isnan(found).tolist() == [True, True, True, False]


def test_beyond_the_labelled_rows_the_formula_ranks_and_the_deviation_is_large() -> None:
    rows, scores, _ = labelled()
    far = [{**rows[0], "a": 100.0}] * 3
    given = scores.max() * np.array([2.0, 10.0, 1000.0])
    found = predictor().predict(far, given)
    assert (np.diff(found.scores) > 0.1).all()
    assert (found.deviations > predictor().predict(rows, scores).deviations.max()).all()


@pytest.mark.parametrize(
    ("scores", "sign"), [([1.0, 2.0, 3.0], 1), ([-3.0, -2.0, -1.0], -1), ([-1.0, 0.5, 2.0], 0)]
)
def test_numbers_keep_the_order_of_scores(scores: list[float], sign: int) -> None:
    rows, _, targets = labelled(n=3)
    found = Predictor.of(parse("sum(G)"), [], rows, np.array(scores), targets)
    assert found.sign == sign
    assert (np.diff(found.numbers) > 0).all()


def test_scores_of_seeds_are_averaged_as_numbers() -> None:
    found = predictor()
    scores = np.array([[1.0, 4.0], [9.0, 4.0]])
    np.testing.assert_allclose(found.mean_scores(scores), [3.0, 4.0])
    np.testing.assert_allclose(replace(found, sign=-1).mean_scores(-scores), [-3.0, -4.0])
    np.testing.assert_allclose(replace(found, sign=0).mean_scores(scores), [5.0, 4.0])
    assert np.isnan(formula_numbers(np.array([-1.0, 0.0]), 1)).all()


def test_permuting_targets_leaves_nothing_to_predict() -> None:
    rows, scores, targets = labelled(n=200)
    rng = np.random.default_rng(1)
    permuted = rng.permutation(targets)
    found = Predictor.of(parse("sum(G)"), [], rows[:150], scores[:150], permuted[:150])
    process = found.predict(rows[150:], np.full(50, np.median(scores))).scores
    assert abs(np.corrcoef(process, permuted[150:])[0, 1]) < 0.3
    assert np.abs(process).max() < 0.5, "the process has shrunk to the middle"


def test_more_rows_than_the_process_takes_are_thinned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lpzero.scores.predictor.MOST_ROWS", 20)
    rows, scores, targets = labelled()
    found = Predictor.of(parse("sum(G)"), [], rows, scores, targets)
    assert (len(found.points), len(found.targets), len(found.numbers)) == (20, 20, 20)
    kept = [float(np.log(score)) for score in scores]
    assert set(found.numbers.tolist()) <= set(kept)
    assert np.corrcoef(found.predict(rows, scores).scores, targets)[0, 1] > 0.7


def test_unlike_terms_are_the_first_of_those_that_correlate() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(2, 50))
    close = a + 0.05 * rng.normal(size=50)
    logs = np.stack([np.ones(50), a, -2 * close, b, close, a + b])
    assert unlike(logs).tolist() == [False, True, False, True, False, True]
    assert unlike(logs, most=2).tolist() == [False, True, False, True, False, False]
    assert unlike(np.empty((0, 5))).tolist() == []
