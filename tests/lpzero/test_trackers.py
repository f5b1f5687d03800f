"""Trackers write the numbers of every generation, read back with the real packages."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import pytest

from lpzero.discover.campaign import Progress
from lpzero.errors import InputError
from lpzero.trackers import MLflowTracker, TensorBoardTracker, numbers, tracker
from tests.lpzero.small_campaign import discovery


def tracked(callback: Any) -> list[Progress]:
    """What a campaign reported while the tracker watched."""
    seen: list[Progress] = []
    discovery(callbacks=[callback, lambda progress: seen.append(progress)]).search()
    assert [progress.generation for progress in seen] == list(range(7))
    return seen


@pytest.mark.slow
def test_tensorboard_reads_every_generation_of_a_campaign_and_of_its_resumption(
    tmp_path: Path,
) -> None:
    pytest.importorskip("tensorboard", reason="the extra lpzero[tensorboard] is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    watching = TensorBoardTracker(tmp_path / "events")
    seen = tracked(watching)  # read before it is closed: a killed campaign does not close it
    found = EventAccumulator(str(tmp_path / "events")).Reload()
    for name in numbers(seen[0]):
        events = found.Scalars(name)
        assert [event.step for event in events] == list(range(7))
        assert [event.value for event in events] == pytest.approx(
            [numbers(progress)[name] for progress in seen]
        )
    texts = [
        event.tensor_proto.string_val[0] for event in found.Tensors("formula/best/text_summary")
    ]
    assert texts[-1].decode().strip() == str(seen[-1].best.formula)
    assert len(texts) == len({str(progress.best.formula) for progress in seen})
    watching.close()
    watching.close()


@pytest.mark.slow
def test_mlflow_reads_every_generation_of_a_campaign(tmp_path: Path) -> None:
    pytest.importorskip("mlflow", reason="the extra lpzero[mlflow] is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of packages that MLflow imports
        import mlflow

        before = dict(os.environ)
        seen = tracked(MLflowTracker(tmp_path / "mlruns", "experiment", "first"))
        assert os.environ == before
        assert mlflow.active_run() is None
        from lpzero.trackers import _files_allowed

        with _files_allowed():
            client = mlflow.MlflowClient((tmp_path / "mlruns").as_uri())
        experiment = client.get_experiment_by_name("experiment")
        (run,) = client.search_runs([experiment.experiment_id])
    assert (run.info.run_name, run.info.status) == ("first", "FINISHED")
    assert run.data.tags["lpzero.best"] == str(seen[-1].best.formula)
    for name in numbers(seen[0]):
        found = sorted(client.get_metric_history(run.info.run_id, name), key=lambda m: m.step)
        assert [metric.value for metric in found] == [numbers(progress)[name] for progress in seen]


@pytest.mark.parametrize("text", ["", "tensorboard", "tensorboard:", "wandb:x", "x"])
def test_an_unknown_tracker_is_one_line(text: str) -> None:
    with pytest.raises(InputError, match="expected one of tensorboard:FOLDER, mlflow:FOLDER"):
        tracker(text)
