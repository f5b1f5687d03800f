"""Weighted sums of columns: features, fits and the search against plain references."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from lpzero.arrays import FloatArray
from lpzero.judgement.correlation import spearman
from lpzero.judgement.ranks import rank_targets
from lpzero.scores import column_features
from lpzero.scores.column_features import MAIN, Features, features_of, with_pairs
from lpzero.scores.values import Values
from lpzero.scores.weighted_sums import residuals, search, standard_scores
from primitives.parser import parse

ROWS = np.arange(0, 120)


def columns(n: int = 160) -> dict[str, FloatArray]:
    rng = np.random.default_rng(3)
    return {
        "synflow": np.exp(3 * rng.standard_normal(n)),
        "jacov": -32.2 + 0.01 * rng.standard_normal(n),
        "grasp": 5 * rng.standard_normal(n),
        "depth_of": rng.integers(0, 5, n).astype(float),
        "same": np.ones(n),
    }


def targets(of: dict[str, FloatArray]) -> FloatArray:
    rng = np.random.default_rng(4)
    signal = np.log(of["synflow"]) * (of["jacov"] + 32.2) * 100 + of["grasp"]
    return np.asarray(signal + 0.3 * rng.standard_normal(len(signal)))


def with_products(of: dict[str, FloatArray], target: FloatArray) -> Features:
    features = features_of(of, ROWS)
    return with_pairs(features, residuals(features, rank_targets(target[ROWS])))


def test_features_are_the_standardised_values_of_their_formulas() -> None:
    given = columns()
    features = with_products(given, targets(given))
    assert len(features) > len(features.single)
    formulas = [features.formula(at) for at in range(len(features))]
    raw = Values(columns=given).scores(formulas)[:, ROWS]
    assert "same" not in {name for of in formulas for name in of.columns}
    varies = features.values.any(axis=1)
    expected = stats.zscore(raw[varies], axis=1)
    assert np.abs(features.values[varies] - expected).max() < 1e-6
    assert len({str(formula) for formula in formulas}) == len(formulas)
    assert all(len(formula.columns) == 2 for formula in formulas[len(features.single) :])


def test_the_products_kept_are_those_that_correlate_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against every product of two columns, one by one."""
    given = columns()
    features = features_of(given, ROWS)
    target = standard_scores(rank_targets(targets(given)[ROWS]))
    monkeypatch.setattr(column_features, "_SCREENED", 20)
    kept = with_pairs(features, [target])
    raw = Values(columns=given).scores(features.single)[:, ROWS]
    rhos = {}
    for first, second in itertools.combinations(range(len(raw)), 2):
        product = raw[first] * raw[second]
        owners = {features.single[at].columns[0] for at in (first, second)}
        if len(owners) == 2 and np.ptp(product) > 0:
            rhos[first, second] = abs(float(np.corrcoef(product, target)[0, 1]))
    best = sorted(rhos, key=lambda pair: -rhos[pair])[:20]
    assert {tuple(pair) for pair in kept.pairs.tolist()} == set(best)


def test_residuals_are_the_target_and_what_is_left_of_it() -> None:
    given = columns()
    features = features_of(given, ROWS)
    whole, left = residuals(features, rank_targets(targets(given)[ROWS]))
    assert float(left @ left) < 0.7 * float(whole @ whole)
    assert abs(float(left @ (whole - left))) < 1e-6 * len(left)  # as of any least squares


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e30])
def test_a_column_with_zeros_is_read_in_its_own_unit(scale: float) -> None:
    """The main scale of synflow with dead networks does not depend on its unit."""
    values = np.exp(4 * np.random.default_rng(0).standard_normal(200))
    values[:20] = 0
    features = features_of({"synflow": scale * values}, np.arange(200), MAIN)
    assert abs(float(np.corrcoef(features.values[0], np.log(values + 0.002))[0, 1])) > 0.95


def test_formulas_are_defined_on_rows_that_made_no_features() -> None:
    given = columns()
    features = with_products(given, targets(given))
    formulas = [features.formula(at) for at in range(len(features))]
    assert np.isfinite(Values(columns=given).scores(formulas)).all()


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 2, 4])
def test_the_best_sums_have_the_rho_that_their_formulas_have(size: int) -> None:
    given = columns()
    target = targets(given)
    features = with_products(given, target)
    found = search(features, rank_targets(target[ROWS]), 4)
    for best in found.by_size[size - 1][:5]:
        assert len(best.members) == size
        formula = features.weighted(best.members, best.weights)
        assert parse(str(formula)) == formula
        scores = Values(columns=given).scores([formula])[0]
        assert spearman(scores[ROWS], target[ROWS]) == pytest.approx(best.rho, abs=2e-3)
    rhos = [best.rho for best in found.by_size[size - 1]]
    assert rhos == sorted(rhos, reverse=True)


def test_the_search_finds_what_made_the_target() -> None:
    given = columns()
    target = targets(given)
    features = with_products(given, target)
    best = search(features, rank_targets(target[ROWS]), 3).by_size[2][0]
    formula = features.weighted(best.members, best.weights)
    scores = Values(columns=given).scores([formula])[0]
    unseen = np.arange(120, 160)
    assert spearman(scores[unseen], target[unseen]) > 0.9


def test_weights_are_those_of_least_squares_on_normal_scores() -> None:
    given = columns()
    target = targets(given)
    features = features_of(given, ROWS)
    ranks = rank_targets(target[ROWS])
    best = search(features, ranks, 2).by_size[1][0]
    design = features.values[list(best.members)].T
    expected = np.linalg.lstsq(design, standard_scores(ranks), rcond=None)[0]
    assert np.allclose(best.weights, expected, rtol=0.1)


@pytest.mark.slow
def test_a_target_of_noise_and_few_columns_are_no_error() -> None:
    rng = np.random.default_rng(0)
    only = {"one_column": rng.standard_normal(30)}
    features = features_of(only, np.arange(20))
    found = search(features, rank_targets(rng.standard_normal(20)), 8)
    assert found.by_size
    nothing = features_of({"same": np.ones(30)}, np.arange(20))
    assert search(nothing, rank_targets(rng.standard_normal(20)), 8).by_size == ()
