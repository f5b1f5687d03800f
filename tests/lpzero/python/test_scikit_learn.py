"""`Discovery` as an estimator: scikit-learn's own checks, and its manners with columns."""

from __future__ import annotations

import pickle
import signal
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lpzero
from lpzero.errors import InputError

SMALL: dict[str, Any] = {"generations": 0, "population": 2, "offspring": 1, "permutations": 0}
FEW = "a campaign needs 10 rows to train on, which are half of its rows; the check has fewer"
# What scikit-learn checks and is not so, with the reason.
EXCUSED = {
    "check_n_features_in_after_fitting": FEW,
    "check_estimators_nan_inf": FEW,
    "check_fit2d_1feature": FEW,
}


def rows(n: int = 60) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    X = rng.lognormal(size=(n, 3))
    return X, np.log(X[:, 0]) - 2 * np.log(X[:, 1]) + 0.1 * rng.normal(size=n)


@pytest.mark.slow
def test_it_passes_the_checks_of_scikit_learn() -> None:
    checks = pytest.importorskip(
        "sklearn.utils.estimator_checks", reason="scikit-learn is not installed"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it does not inherit BaseEstimator, which is optional
        found = checks.check_estimator(
            lpzero.Discovery(**SMALL, terms=2, choose="train", predictor="none"),
            expected_failed_checks=EXCUSED,
            on_skip=None,
            on_fail=None,
        )
    by_status: dict[str, set[str]] = {}
    for result in found:
        by_status.setdefault(result["status"], set()).add(result["check_name"])
    assert by_status.get("failed", set()) == set()
    assert by_status["xfail"] == set(EXCUSED)
    assert len(by_status["passed"]) > 25


@pytest.mark.slow
def test_cross_validation_clones_and_scores_it() -> None:
    base = pytest.importorskip("sklearn.base", reason="scikit-learn is not installed")
    from sklearn.exceptions import NotFittedError
    from sklearn.model_selection import cross_val_score

    X, y = rows()
    found = lpzero.Discovery(**SMALL)
    copied = base.clone(found)
    assert copied.get_params() == found.get_params()
    assert min(cross_val_score(found, X, y, cv=3)) > 0.8
    with pytest.raises(NotFittedError):
        found.predict(X)


@pytest.mark.slow
def test_columns_are_fitted_predicted_and_pickled() -> None:
    pandas = pytest.importorskip("pandas")
    X, y = rows()
    frame = pandas.DataFrame(X, columns=["first one", "b", "params"])
    found = lpzero.Discovery(**SMALL).fit(frame, y)
    assert list(found.feature_names_in_) == ["first one", "b", "params"]
    scores = found.predict(frame)
    again = pickle.loads(pickle.dumps(found))  # noqa: S301 (our own)
    np.testing.assert_array_equal(again.predict(frame), scores)
    assert repr(again) == repr(found)
    assert found.score(frame, y) > 0.9
    with pytest.raises(InputError, match="feature names should match"):
        found.predict(frame[["b", "first one", "params"]])
    worse = lpzero.Discovery(**SMALL, smaller_is_better=True).fit(frame, -y)
    assert worse.score(frame, -y) > 0.9


@pytest.mark.slow
def test_new_rows_are_predicted_one_by_one_with_ranks_too() -> None:
    X, y = rows()
    found = lpzero.Discovery(**SMALL, columns_as="ranks").fit(X, y)
    assert "rank-of-" in str(found.best_.formula)
    whole = found.predict(X)
    np.testing.assert_allclose([found.predict(row[None])[0] for row in X], whole)


def test_arguments_are_set_and_checked() -> None:
    found = lpzero.Discovery("nano-gpt2", generations=3)
    assert found.set_params(generations=4).get_params()["generations"] == 4
    for wrong in (lambda: found.set_params(generaations=1), lambda: lpzero.Discovery(seeed=1)):
        with pytest.raises(InputError, match=r"unknown option .*did you mean"):
            wrong()
    with pytest.raises(AttributeError, match="not fitted: call fit"):
        _ = found.best_
    with pytest.raises(InputError, match="requires y"):
        lpzero.Discovery().fit(rows()[0])


@pytest.mark.slow
def test_a_stored_campaign_is_loaded_and_goes_on(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    X, y = rows()
    frame = pandas.DataFrame({"a": X[:, 0], "b": X[:, 1], "acc": y})
    frame.to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / "run"
    found = lpzero.Discovery(tmp_path / "t.csv", target="acc", out=out, **SMALL).fit()
    loaded = lpzero.load(out)
    assert isinstance(loaded, lpzero.Discovery)
    assert loaded.best_ == found.best_
    assert list(loaded.hall_of_fame_) == list(found.hall_of_fame_)
    np.testing.assert_array_equal(loaded.predict(frame), found.predict(frame))
    found.set_params(warm_start=True, generations=1).fit()
    assert len(found.history_) == 2


@pytest.mark.slow
def test_warm_start_begins_with_what_was_found() -> None:
    X, y = rows()
    found = lpzero.Discovery(**SMALL, warm_start=True).fit(X, y)
    before = found.hall_of_fame_[0]["fitness"]
    assert found.fit(X, y).hall_of_fame_[0]["fitness"] >= before


@pytest.mark.slow
def test_after_an_interrupt_it_has_what_was_found() -> None:
    X, y = rows()
    seen: list[int] = []

    def interrupt(progress: Any) -> None:
        seen.append(progress.generation)
        if progress.generation == 1:
            signal.raise_signal(signal.SIGINT)

    found = lpzero.Discovery(
        generations=50, population=5, offspring=3, permutations=0, callbacks=[interrupt]
    )
    with pytest.raises(KeyboardInterrupt):
        found.fit(X, y)
    assert seen == [0, 1, 2]
    assert len(found.history_) == 3
    assert found.best_.rho["test"] > 0.5
