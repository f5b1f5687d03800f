"""The predictor of a campaign: no test target, no row left out has a part in what predicts it."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lpzero.discover import prediction
from lpzero.discover.discovery import Campaign
from lpzero.discover.levels import FOLDS, row_folds
from lpzero.discover.prediction import REFERENCE, TablePrediction
from lpzero.errors import FitnessError, InputError
from lpzero.export import export, select
from lpzero.judgement.correlation import spearman
from lpzero.scores.gaussian import NormalScale
from lpzero.scores.predictor import ProcessOfRows
from tests.lpzero.sealed_runs import content
from tests.lpzero.small_campaign import discovery, table

pytestmark = pytest.mark.slow

NESTED: dict[str, Any] = {
    "choose": "nested",
    "terms": 4,
    "generations": 0,
    "permutations": 0,
    "statistics": ("W",),
    "unaries": 0,
}


@lru_cache(maxsize=1)
def found() -> Campaign:
    return discovery(**NESTED).run()


def test_a_result_has_the_predictor_and_the_reference_beside_the_winner() -> None:
    campaign = found()
    result, made = campaign.result_, table()
    assert json.loads(json.dumps(result["predictor"])) == result["predictor"]
    assert campaign.prediction_ is not None
    [fitness] = campaign.objective.tables_fitness
    test = fitness.parts.open_test()
    scores = campaign.prediction_.scores
    assert result["predictor"]["rho"]["test"] == pytest.approx(
        spearman(scores[test], made.targets[test])
    )
    judged = result["predictor"]["judged"]["made-up"]
    assert judged["test"]["rho_ci"][0] <= judged["test"]["rho"] <= judged["test"]["rho_ci"][1]
    assert [judged[part]["in_sample"] for part in ("train", "valid", "test")] == [True, True, False]
    own, formula = result["predictor"]["rho"]["test"], result["best"]["rho"]["test"]
    assert result["predictor"]["difference"]["rho"] == pytest.approx(own - formula)
    assert 0 < result["predictor"]["n_terms"] <= 60
    assert result["reference"]["proxy"] == REFERENCE
    for name in ("predictor", "reference"):
        assert -1 <= result[name]["expected"]["rho"] <= 1
        assert result[name]["expected"]["error"] > 0
    assert "predictor" not in discovery(**{**NESTED, "predictor": "none"}).run().result_
    assert "predictor" not in discovery(generations=1).run().result_


def test_the_targets_of_test_rows_are_not_there_to_be_read() -> None:
    campaign = found()
    assert campaign.prediction_ is not None
    [fitness] = campaign.objective.tables_fitness
    assert np.isnan(fitness.table.targets[fitness.parts.open_test()]).all()
    with pytest.raises(FitnessError, match="hidden"):
        prediction.normal_targets(fitness.table.targets)


def test_the_expectation_is_that_of_the_plain_definition() -> None:
    campaign = found()
    made = campaign.prediction_
    assert made is not None
    [fitness] = campaign.objective.tables_fitness
    known, targets = fitness.train_valid_rows, table().targets
    level, rows = fitness.level_choice.level, made._rows
    rhos = []
    for folds in row_folds(known, table().twins(), fitness.parts.seed):
        predicted = {}
        for fitted_on, left_out in folds:
            assert not set(fitted_on) & set(left_out)
            process = ProcessOfRows([rows[i] for i in fitted_on], targets[fitted_on])
            scores = level.scores(level.best(targets, fitted_on, 1)[0])
            normal = NormalScale(scores[fitted_on])
            for i in left_out:
                [of_process] = process.predict([rows[i]])
                predicted[i] = (of_process + normal(scores[[i]])[0]) / 2
        pooled = np.array([predicted[i] for i in known])
        rhos.append(spearman(pooled, targets[known]))
    assert made.expected.rho == pytest.approx(np.mean(rhos), abs=1e-9)


def test_rows_left_out_have_no_part_in_what_predicts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = found()
    assert campaign.prediction_ is not None
    [fitness] = campaign.objective.tables_fitness
    fresh = TablePrediction(fitness, campaign.prediction_._formula, campaign.prediction_._scores)
    seen: list[tuple[set[int], set[int]]] = []
    places = {id(row): i for i, row in enumerate(fresh._rows)}

    class Watched(ProcessOfRows):
        def __init__(self, rows: Any, targets: Any) -> None:
            super().__init__(rows, targets)
            self.of = {places[id(row)] for row in rows}

        def predict(self, rows: Any) -> Any:
            seen.append((self.of, {places[id(row)] for row in rows}))
            return super().predict(rows)

    monkeypatch.setattr(prediction, "ProcessOfRows", Watched)
    _ = fresh.expected
    known = set(fitness.train_valid_rows.tolist())
    assert len(seen) == FOLDS * len(fitness.level_choice.folded)
    for fitted_on, left_out in seen:
        assert not fitted_on & left_out
        assert fitted_on | left_out == known


def test_without_a_term_that_differs_there_is_one_clear_error() -> None:
    [fitness] = found().objective.tables_fitness
    without = copy.copy(fitness)
    without.__dict__["levels"] = []
    del without.__dict__["level_choice"]
    with pytest.raises(InputError, match="nothing to rank by"):
        _ = without.level_choice


def test_a_column_of_the_table_is_no_term_because_new_architectures_have_none() -> None:
    rng = np.random.default_rng(0)
    made = table()
    extra = {"trained": np.exp(made.targets / 4 + 0.01 * rng.normal(size=len(made)))}
    with_column = replace(made, extra=extra)
    campaign = discovery(table=with_column, columns=("trained",), **NESTED).run()
    assert campaign.prediction_ is not None
    assert all("trained" not in term.columns for term in campaign.prediction_.predictor.terms)


def files(folder: Path) -> tuple[bytes, str]:
    exported = export(select(str(folder)), "json", predictor=True)
    return (folder / "predictor.json").read_bytes(), exported


def test_the_stored_bytes_do_not_depend_on_the_jobs_or_on_a_stop(tmp_path: Path) -> None:
    discovery(tmp_path / "one", **{**NESTED, "generations": 2}).run()
    discovery(tmp_path / "two", **{**NESTED, "generations": 2}, jobs=2).run()

    def stop(progress: Any) -> bool:
        return progress.generation == 1

    discovery(tmp_path / "stopped", **{**NESTED, "generations": 2}, callbacks=[stop]).search()
    assert not (tmp_path / "stopped" / "predictor.json").exists()
    discovery(tmp_path / "stopped", **{**NESTED, "generations": 2}, resume=True).run()
    assert files(tmp_path / "one") == files(tmp_path / "two") == files(tmp_path / "stopped")
    scores, result = (content(tmp_path / "one", name) for name in ("scores.json", "result.json"))
    [line] = [of for of in scores["tables"]["made-up"]["rivals"] if of["proxy"] == REFERENCE]
    assert line["kind"] == "supervised", "it is among the rivals on the page"
    assert line["rho"] == result["reference"]["rho"]["test"]
