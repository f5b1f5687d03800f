"""Callbacks of a campaign that write its progress for other tools: TensorBoard and MLflow.

Each is an extra (`lpzero[tensorboard]`, `lpzero[mlflow]`) and is imported when it is used:

    Discovery("nano-gpt2", callbacks=[TensorBoardTracker("runs/tensorboard")]).fit()
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from lpzero.errors import InputError

if TYPE_CHECKING:
    from lpzero.discover.campaign import Progress

_ALLOW_FILES = "MLFLOW_ALLOW_FILE_STORE"
_LONGEST = 5000  # letters of a tag's value


def numbers(progress: Progress) -> dict[str, float]:
    """What is tracked of a generation, by name."""
    tried = max(1, progress.tried)
    return {
        "fitness/train": progress.train,
        "fitness/valid": progress.valid,
        "formula/complexity": float(progress.best.complexity),
        "search/evaluated": float(progress.evaluated),
        "search/rejected_share": progress.rejected.total() / tried,
        "search/repeated_share": progress.repeats / tried,
        "search/evaluations_per_second": progress.per_second,
    }


def missing(package: str, extra: str) -> InputError:
    """The error of a package that is not installed."""
    return InputError(f"{package} is not installed: install it with pip install 'lpzero[{extra}]'")


class TensorBoardTracker:
    """Writes the numbers of every generation, and the best formula whenever it changes.

    Every generation is flushed, so that a killed campaign loses none; a resumed campaign writes
    another file into the same folder, which TensorBoard shows as one curve.
    """

    def __init__(self, folder: str | Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise missing("tensorboard", "tensorboard") from None
        self._writer = SummaryWriter(str(folder))
        self._formula = ""

    def __call__(self, progress: Progress) -> None:
        """Write the generation."""
        for name, value in numbers(progress).items():
            self._writer.add_scalar(name, value, progress.generation)
        formula = str(progress.best.formula)
        if formula != self._formula:
            self._writer.add_text("formula/best", f"    {formula}", progress.generation)
            self._formula = formula
        self._writer.flush()

    def close(self) -> None:
        """Close the file of events."""
        self._writer.close()


@contextmanager
def _files_allowed() -> Iterator[None]:
    """A context in which MLflow opens a folder: it does so only where that is asked for."""
    before = os.environ.get(_ALLOW_FILES)
    os.environ[_ALLOW_FILES] = "true"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_ALLOW_FILES]
        else:
            os.environ[_ALLOW_FILES] = before


class MLflowTracker:
    """Writes the numbers of every generation as metrics and the best formula as a tag.

    `place` is a folder or an address that MLflow knows (`http://...`, `sqlite:///...`). The run is
    made with the first generation and ends with the last, or when the tracker is closed. MLflow's
    own current run and settings are left alone.
    """

    def __init__(
        self, place: str | Path, experiment: str = "lpzero", run_name: str | None = None
    ) -> None:
        try:
            from mlflow.entities import Metric
            from mlflow.tracking import MlflowClient
        except ImportError:
            raise missing("mlflow", "mlflow") from None
        text = str(place)
        address = text if "://" in text else Path(text).resolve().as_uri()
        with _files_allowed():
            self._client, self._metric = MlflowClient(address), Metric
        self._experiment, self._run_name = experiment, run_name
        self._run: str | None = None
        self._formula = ""

    def __call__(self, progress: Progress) -> None:
        """Write the generation."""
        run = self._run = self._run or self._start()
        now = int(time.time() * 1000)
        tracked = numbers(progress).items()
        metrics = [self._metric(name, value, now, progress.generation) for name, value in tracked]
        self._client.log_batch(run, metrics=metrics)
        formula = str(progress.best.formula)
        if formula != self._formula:
            self._client.set_tag(run, "lpzero.best", formula[:_LONGEST])
            self._formula = formula
        if progress.generation >= progress.generations:
            self.close()

    def close(self) -> None:
        """End the run."""
        if self._run is not None:
            self._client.set_terminated(self._run)
            self._run = None

    def _start(self) -> str:
        experiment = self._client.get_experiment_by_name(self._experiment)
        number = (
            experiment.experiment_id
            if experiment
            else self._client.create_experiment(self._experiment)
        )
        return str(self._client.create_run(number, run_name=self._run_name).info.run_id)


Tracker: TypeAlias = TensorBoardTracker | MLflowTracker
TRACKERS: Mapping[str, Callable[[str], Tracker]] = {
    "tensorboard": TensorBoardTracker,
    "mlflow": MLflowTracker,
}


def tracker(text: str) -> Tracker:
    """The tracker of "tensorboard:FOLDER" or "mlflow:FOLDER"."""
    name, colon, place = text.partition(":")
    if name not in TRACKERS or not colon or not place:
        known = ", ".join(f"{known}:FOLDER" for known in TRACKERS)
        raise InputError(f"tracker {text!r} is not known; expected one of {known}")
    return TRACKERS[name](place)
