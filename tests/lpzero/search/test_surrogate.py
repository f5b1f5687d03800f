"""The surrogate: held-out rows have no part in what predicts them, and the scale fits."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import spaces
from lpzero.scores.features import Features, describe
from lpzero.scores.gaussian import Process
from lpzero.search import evaluators, surrogate
from lpzero.search.surrogate import LOGARITHM, PLAIN, Fitted, Scale, Surrogate
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


def cross_validated(table: Table, scale: Scale) -> Any:
    return surrogate.cross_validated(describe(table.space, table.archs), table.targets, scale)


def test_features_and_constants_are_fitted_without_the_held_out_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = made()
    fitted: list[set[Any]] = []
    asked: list[tuple[set[Any], int]] = []
    rows = describe(SPACE, table.archs)
    archs = {id(row): arch for arch, row in zip(table.archs, rows, strict=True)}

    class Watched(Features):
        @classmethod
        def of(cls, rows: Any) -> Features:
            fitted.append({archs[id(row)] for row in rows})
            return cls(**vars(super().of(rows)))

        def __call__(self, rows: Any) -> Any:
            asked.append(({archs[id(row)] for row in rows}, len(fitted) - 1))
            return super().__call__(rows)

    monkeypatch.setattr(surrogate, "Features", Watched)
    predictions = surrogate.cross_validated(rows, table.targets, PLAIN)
    assert np.isfinite(predictions).all()
    assert len(fitted) == 10
    for held_out, fold in asked[1::2]:  # after the rows it is fitted to come those it predicts
        assert len(held_out) == N // 10
        assert held_out.isdisjoint(fitted[fold])
        assert held_out | fitted[fold] == set(table.archs)


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


def test_predictions_are_in_the_units_of_the_targets_and_a_plane_extrapolates() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(30, 3))
    rows = [dict(zip("abc", point, strict=True)) for point in points.tolist()]
    targets = 500 + 40 * points @ [1.0, -2.0, 0.5]
    assert Fitted(rows, targets).predict(rows) == pytest.approx(targets, abs=5)
    [beyond] = Fitted(rows, targets).predict([{"a": 4.0, "b": 0.0, "c": 0.0}])
    assert beyond == pytest.approx(660, abs=20)


def test_the_process_is_the_most_likely_of_the_grid() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 3))
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    y = x @ [1.0, -2.0, 0.5] + np.sin(x[:, 0])
    rows = [dict(zip("abc", point, strict=True)) for point in x.tolist()]
    z = (y - y.mean()) / y.std()
    best = max(surrogate.GRID, key=lambda one: Process(*one, x, z).evidence)
    new = rng.normal(size=(4, 3))
    expected = y.mean() + y.std() * Process(*best, x, z).predict(new)
    found = Fitted(rows, y).predict([dict(zip("abc", p, strict=True)) for p in new.tolist()])
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_a_fit_uses_one_blas_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def watched(*words: Any) -> Any:
        seen.extend(one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas")
        return Process(*words)

    monkeypatch.setattr(surrogate, "Process", watched)
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


def test_the_interval_has_as_many_rows_as_it_says() -> None:
    table = made()
    fitted = Surrogate(SPACE, table)
    inside = 0
    for target, predicted in zip(table.targets, fitted.held_out, strict=True):
        low, high = fitted.interval(float(predicted))
        inside += low <= target <= high
    assert inside == round(0.95 * N)
