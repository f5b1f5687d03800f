"""Reads the directory of a one-shot training: the run, and the trained supernet in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lpzero.errors import InputError
from lpzero.runs.config import StoredConfig
from lpzero.runs.directory import file_digest
from lpzero.runs.journal import read_journal
from lpzero.runs.layout import JOURNAL, RESULT, place
from lpzero.runs.run import Run, open_run, read_file
from lpzero.supernet.one_shot import (
    KIND,
    WEIGHTS,
    SupernetRequest,
    is_measurement,
    request_of,
)

if TYPE_CHECKING:
    from spaces.supernet import Supernet
    from spaces.training.shared_tasks import Measured, SharedTask


@dataclass(frozen=True, eq=False)
class SupernetRun(Run):
    """A one-shot training; `history` is the journal."""

    history: Sequence[dict[str, Any]] = ()


def read(config: StoredConfig) -> SupernetRun:
    """The training with that config; a remark if it is not finished."""
    remarks: list[str] = []
    result = read_file(config, RESULT, remarks)
    found = read_journal(config.folder / JOURNAL, is_measurement, place(config.hash, JOURNAL))
    if result is None:
        remarks.append("The training is not finished: run the same command again to continue it.")
    return SupernetRun(config, result, remarks, found.records)


@dataclass(frozen=True, eq=False)
class TrainedSupernet:
    """A trained supernet, and the task that it was trained on."""

    folder: Path
    request: SupernetRequest
    supernet: Supernet[Any]
    task: SharedTask

    def measure(self, arch: Any, part: str = "valid") -> Measured:
        """The architecture's measure with inherited weights on held-out data; one thread."""
        from lpzero.statistics.isolation import single_thread
        from lpzero.supernet.trainer import measure

        with single_thread():
            return measure(self.supernet, self.task, arch, self.request.settings, part)

    def subnet(self, arch: Any) -> Any:
        """A separate model with the architecture's weights, BatchNorms recomputed."""
        from lpzero.statistics.isolation import single_thread
        from lpzero.supernet.trainer import norm_state

        with single_thread():
            state = norm_state(self.supernet, self.task, arch, self.request.settings)
            return self.supernet.subnet(arch, state)


def open_supernet(folder: str | Path) -> TrainedSupernet:
    """The supernet of a finished training; its weights must be those that were written."""
    from lpzero.supernet import weights
    from spaces.training.shared_tasks import task_of

    run = open_run(folder)
    if run.kind != KIND:
        raise InputError(f"{folder} is a {run.kind}: expected the directory of a supernet training")
    if run.result is None:
        raise InputError(f"the training in {folder} is not finished: run it again to continue")
    path = Path(folder) / WEIGHTS
    if file_digest(path) != run.result["weights"]:
        raise InputError(f"{path} is missing or was changed: train the supernet again")
    request = request_of(run.request)
    supernet = request.made_space.supernet(request.settings.seed)
    fit = weights.load_into(supernet.largest, weights.read(path))
    if not fit.is_complete:
        raise InputError(f"{path} does not fit the space: {'; '.join(fit.lines())}")
    task = task_of(request.made_space, request.dataset)
    if task.digest() != request.data_digest:
        raise InputError(f"dataset {request.dataset} is not the one that {folder} was trained on")
    return TrainedSupernet(Path(folder), request, supernet, task)
