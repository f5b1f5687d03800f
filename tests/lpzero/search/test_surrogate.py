"""The surrogate: held-out rows have no part in what predicts them, and the scale fits."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import spaces
from lpzero.search import evaluators, surrogate
from lpzero.search.surrogate import (
    GRID,
    LOGARITHM,
    PLAIN,
    Features,
    Kernel,
    Process,
    Surrogate,
    cross_validated,
    likelihood,
)
from spaces import user_modules
from spaces.errors import TableError
from spaces.tables import load
from spaces.tables.table import Table, make_table
from tests.lpzero.search.landscapes import SPACE, height

pytestmark = pytest.mark.slow

N = 40


def made(transform: Any = lambda y: y) -> Table:
    rng = random.Random(0)
    archs = list(dict.fromkeys(SPACE.sample(rng) for _ in range(60)))[:N]
    rows = [(str(i), arch, transform(height(SPACE, arch))) for i, arch in enumerate(archs)]
    return make_table("made-up", SPACE, rows, "height", "none")


def test_features_and_constants_are_fitted_without_the_held_out_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = made()
    fitted: list[set[Any]] = []
    asked: list[tuple[set[Any], int]] = []

    class Watched(Features):
        def __init__(self, space: Any, archs: Sequence[Any]) -> None:
            super().__init__(space, archs)
            fitted.append(set(archs))

        def __call__(self, archs: Sequence[Any]) -> Any:
            asked.append((set(archs), len(fitted) - 1))
            return super().__call__(archs)

    monkeypatch.setattr(surrogate, "Features", Watched)
    predictions = cross_validated(table, PLAIN)
    assert np.isfinite(predictions).all()
    assert len(fitted) == 10
    for archs, fold in asked[1::2]:  # after the rows it is fitted to come those it predicts
        assert len(archs) == N // 10
        assert archs.isdisjoint(fitted[fold])
        assert archs | fitted[fold] == set(table.archs)


def test_predictions_are_in_units_of_the_target_on_either_scale() -> None:
    table = made(lambda y: -np.exp(8 - y / 4))
    for scale in (PLAIN, LOGARITHM):
        predictions = cross_validated(table, scale)
        assert np.corrcoef(predictions, table.targets)[0, 1] > 0.8
        assert 0.3 < predictions.std() / table.targets.std() < 2
    errors = [
        np.square(cross_validated(table, s) - table.targets).mean() for s in (PLAIN, LOGARITHM)
    ]
    made_of = Surrogate(SPACE, table)
    assert made_of.scale is (PLAIN if errors[0] <= errors[1] else LOGARITHM)
    assert made_of.rmse == pytest.approx(np.sqrt(min(errors)))


def test_a_process_predicts_its_points_in_their_units() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(30, 3))
    targets = 500 + 40 * points @ [1.0, -2.0, 0.5]
    predicted = Process(points, targets).predict(points)
    assert predicted == pytest.approx(targets, abs=5)
    beyond = Process(points, targets).predict(np.array([[4.0, 0.0, 0.0]]))
    assert beyond[0] == pytest.approx(660, abs=20), "a plane extrapolates"


def test_the_likelihood_is_that_of_the_normal_distribution() -> None:
    from scipy.stats import multivariate_normal

    rng = np.random.default_rng(1)
    points, targets = rng.normal(size=(7, 2)), rng.normal(size=7)
    constant = -3.5 * np.log(2 * np.pi)
    for kernel in (GRID[0], GRID[-1], Kernel(1.0, 0.3, 2.0, 0.1)):
        covariance = kernel.between(points, points) + kernel.noise * np.eye(7)
        expected = multivariate_normal(np.zeros(7), covariance).logpdf(targets) - constant
        assert likelihood(kernel, points, targets) == pytest.approx(expected, rel=1e-9)


def test_a_fit_uses_one_blas_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def watched(*words: Any) -> float:
        seen.extend(one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas")
        return likelihood(*words)

    monkeypatch.setattr(surrogate, "likelihood", watched)
    table = made()
    with threadpool_limits(2, "blas"):
        Surrogate(SPACE, table)
    assert set(seen) == {1}


def test_a_part_of_the_space_has_the_rows_inside_or_a_surrogate_of_all() -> None:
    whole = load("nano-gpt2")
    part = replace(spaces.get("nano-gpt2"), name="nano-gpt2-of-four-heads", n_head=(4,))
    user_modules.remember_space(part.name, part)
    inside = [i for i, arch in enumerate(whole.archs) if set(arch.n_head) == {4}]
    assert 0 < len(inside) < len(whole)
    looked_up = evaluators.make("table", part, "nano-gpt2", None)
    assert looked_up is not None
    assert looked_up.pool == list(dict.fromkeys(whole.archs[i] for i in inside))
    assert looked_up.describe()["n"] == len(inside)
    fitted = evaluators.make("surrogate", part, "nano-gpt2", None)
    assert fitted is not None
    assert (fitted.pool, fitted.describe()["n"]) == (None, len(whole))
    nothing = replace(part, name="nano-gpt2-of-nothing", n_head=(3,))
    user_modules.remember_space(nothing.name, nothing)
    with pytest.raises(TableError, match="cannot be read in space nano-gpt2-of-nothing"):
        evaluators.make("table", nothing, "nano-gpt2", None)
