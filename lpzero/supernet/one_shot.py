"""`lpzero train --supernet`: a one-shot training in a run's directory.

Every `every` steps the preferred architectures are measured, a line of the journal is written and a
checkpoint: the weights and moments in a file of its own, then the JSON that names it. A killed
training continues from the last checkpoint and ends with the same bytes. The settings are PreNAS's
schedule, with steps and rate of nano scale.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import spaces
from lpzero import files
from lpzero.errors import InputError
from lpzero.options import SEED, SUPERNET, OneOf, Real, Whole, check, from_json, option, to_json
from lpzero.runs.config import SCHEMA, RunConfig, read_config
from lpzero.runs.directory import RunDirectory, file_digest
from lpzero.runs.layout import JOURNAL, RESULT
from lpzero.runs.run import read_file
from lpzero.supernet.selection import REDUNDANT, SAMPLERS, read_preferred, usual_preferred
from spaces.base import Space


@dataclass(frozen=True, slots=True)
class SupernetSettings:
    """How a supernet is trained; every field is an option."""

    sampler: str = option(
        "balanced",
        "Which architecture a step trains: uniform or balanced over the preferred ones, resampled"
        " from their choices, or redundant (any of the space)",
        OneOf("sampler", tuple(SAMPLERS)),
        panel=SUPERNET,
    )
    steps: int = option(3000, "The number of training steps", Whole(1))
    batch: int = option(64, "The number of images or windows in a step", Whole(1), panel=SUPERNET)
    sandwich: int = option(
        0,
        "Train the largest, the smallest and this many drawn architectures in every step (BigNAS);"
        " 0 trains one drawn architecture",
        Whole(0),
        panel=SUPERNET,
    )
    learning_rate: float = option(
        4e-3, "The learning rate of AdamW after warm-up", Real(0), panel=SUPERNET
    )
    final_rate: float = option(
        2e-5, "The learning rate at the end of the cosine", Real(0), panel=SUPERNET
    )
    warmup: float = option(
        0.05, "The share of the steps in which the rate rises", Real(0, 1), panel=SUPERNET
    )
    weight_decay: float = option(0.05, "The weight decay of AdamW", Real(0), panel=SUPERNET)
    smoothing: float = option(0.1, "The label smoothing of classes", Real(0, 1), panel=SUPERNET)
    drop_path: float = option(
        0.1, "The stochastic depth of the last block", Real(0, 1), panel=SUPERNET
    )
    clip: float = option(1.0, "The largest norm of a step's gradient", Real(0), panel=SUPERNET)
    every: int = option(
        250,
        "Steps between checkpoints, at which preferred networks are measured",
        Whole(1),
        panel=SUPERNET,
    )
    images: int = option(
        1500, "The number of held-out inputs that measure a network", Whole(2), panel=SUPERNET
    )
    seed: int = option(0, "The seed of weights, batches and architectures", SEED, panel=SUPERNET)

    def __post_init__(self) -> None:
        check(self)


KIND = "supernet training"
WEIGHTS = "weights.safetensors"
_STATE = "state-{}.safetensors"
_MEASURED = 8  # architectures measured where none is preferred
Show = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class SupernetRequest:
    """A space, the dataset, the preferred architectures and the settings of a training."""

    space: str
    settings: SupernetSettings
    dataset: str
    preferred: tuple[Any, ...]
    data_digest: str
    start: str | None = None  # the digest of the weights that the training starts from

    @staticmethod
    def of(
        name: str,
        settings: SupernetSettings,
        select: Path | None = None,
        dataset: str | None = None,
        start: Path | None = None,
    ) -> SupernetRequest:
        """The request; without a file the usual selection is preferred."""
        from lpzero.supernet.saliency import sharing_of
        from spaces.training.shared_tasks import task_of

        space = spaces.get(name)
        sharing_of(space)
        task = task_of(space, dataset)
        if select is not None:
            archs = read_preferred(select, space)
        else:
            archs = [] if settings.sampler == REDUNDANT else usual_preferred(space)
        digest = None if start is None else file_digest(start)
        if start is not None and digest is None:
            raise InputError(f"{start} does not exist: name a file of weights")
        return SupernetRequest(name, settings, task.name, tuple(archs), task.digest(), digest)

    @property
    def made_space(self) -> Space[Any]:
        return spaces.get(self.space)

    def to_json(self) -> dict[str, Any]:
        """The request as JSON values."""
        space = self.made_space
        return {
            "space": self.space,
            "space_version": space.version,
            "dataset": self.dataset,
            "data_digest": self.data_digest,
            "start": self.start,
            "settings": to_json(self.settings),
            "preferred": [space.to_json(arch) for arch in self.preferred],
        }


def is_complete(history: Sequence[Mapping[str, Any]], steps: Any) -> bool:
    """Whether the lines of a journal go up to the last of so many steps."""
    return bool(history) and history[-1]["step"] == steps


def is_measurement(record: Mapping[str, Any], number: int) -> bool:
    """Whether the record is valid in the journal of a training."""
    return record.keys() == {"step", "loss", "rate", "valid"} and type(record["step"]) is int


def train_supernet(
    request: SupernetRequest,
    folder: Path,
    start: Path | None = None,
    show: Show = lambda record: None,
    lock: bool = True,
) -> dict[str, Any]:
    """Train, or continue, in the directory; the result, also in result.json."""
    from lpzero.statistics.isolation import single_thread

    began = time.monotonic()
    config = RunConfig(KIND, request.to_json())
    with RunDirectory(folder, config, True, is_measurement, lock) as directory, single_thread():
        stored = read_config(folder)
        finished = None if stored is None else read_file(stored, RESULT, directory.remarks)
        if finished is not None and not is_complete(
            directory.journal.records(), request.settings.steps
        ):
            remark = f"{folder / JOURNAL} lacks lines of the training, which starts anew"
            directory.remarks.append(remark)
            finished = None
        if finished is not None:
            directory.log_remarks()
            return finished
        made = _Training(request, directory, start)
        directory.log_remarks()
        made.run(show)
        result = made.result()
        directory.write_result(result, time.monotonic() - began)
        _remove_states(folder)
    return result


class _Training:
    """A training in its directory."""

    def __init__(
        self, request: SupernetRequest, directory: RunDirectory, start: Path | None
    ) -> None:
        from lpzero.supernet.trainer import Trainer
        from spaces.training.shared_tasks import task_of

        self.request, self.directory, self.settings = request, directory, request.settings
        self.space = request.made_space
        self.task = task_of(self.space, request.dataset)
        self.trainer = Trainer(self.space, self.task, self.settings, request.preferred)
        self.losses: list[float] = []
        if not self._restored() and start is not None:
            from lpzero.supernet import weights

            weights.load_into(self.trainer.supernet.largest, weights.read(start))

    @property
    def measured(self) -> Sequence[Any]:
        """The preferred architectures, or the extremes and some drawn ones."""
        if self.request.preferred:
            return self.request.preferred
        import random

        rng, sharing = random.Random(0), self.trainer.supernet.sharing
        drawn = [self.space.sample(rng) for _ in range(_MEASURED - 2)]
        return [sharing.smallest(), *drawn, sharing.largest()]

    def run(self, show: Show) -> None:
        while self.trainer.n_done < self.settings.steps:
            self.losses.append(self.trainer.step())
            is_last = self.trainer.n_done == self.settings.steps
            if self.trainer.n_done % self.settings.every == 0 or is_last:
                show(self._checkpoint())

    def _checkpoint(self) -> dict[str, Any]:
        """Measure, write a line of the journal and a checkpoint; the record of the line."""
        from lpzero.supernet import weights
        from lpzero.supernet.trainer import rate

        done = self.trainer.n_done
        valid = [self._measure(arch, "valid")[0] for arch in self.measured]
        record = {
            "step": done,
            "loss": sum(self.losses) / len(self.losses),
            "rate": rate(self.settings, done - 1),
            "valid": valid,
        }
        self.losses.clear()
        self.directory.journal.append([record])
        path = self.directory.folder / _STATE.format(done)
        data = weights.to_bytes(self.trainer.state())
        files.write_bytes(path, data)
        self.directory.write_checkpoint({"step": done, "state": file_digest(path)})
        _remove_states(self.directory.folder, but=path.name)
        return record

    def _restored(self) -> bool:
        """Whether the training continues from a checkpoint."""
        from lpzero.supernet import weights

        checkpoint = self.directory.read_checkpoint()
        if checkpoint is None:
            self.directory.journal.go_to(0)
            return False
        path = self.directory.folder / _STATE.format(checkpoint["step"])
        if file_digest(path) != checkpoint["state"]:
            self.directory.remarks.append(f"{path} is missing or was changed: training starts anew")
            self.directory.journal.go_to(0)
            return False
        self.trainer.restore(weights.read(path), int(checkpoint["step"]))
        self.directory.journal.go_to(int(checkpoint["journal_lines"]))
        return True

    def _measure(self, arch: Any, part: str) -> tuple[float, float]:
        from lpzero.supernet.trainer import measure

        measured = measure(self.trainer.supernet, self.task, arch, self.settings, part)
        return measured.value, measured.error

    def result(self) -> dict[str, Any]:
        """Measures of the preferred architectures on held-out data; the weights are written."""
        from lpzero.supernet import weights

        supernet = self.trainer.supernet
        about = {"space": self.request.space, "steps": str(self.settings.steps)}
        path = self.directory.folder / WEIGHTS
        tensors = dict(supernet.largest.named_parameters())
        weights.write(path, tensors, about)
        rows = []
        for arch in self.measured:
            valid, test = self._measure(arch, "valid"), self._measure(arch, "test")
            rows.append(
                {
                    "arch": self.space.to_json(arch),
                    "parameters": self.space.parameters(arch),
                    "flops": self.space.flops(arch),
                    "valid": valid[0],
                    "test": test[0],
                    "test_ci": [test[0] - 1.96 * test[1], test[0] + 1.96 * test[1]],
                }
            )
        return {
            "schema": SCHEMA,
            **self.request.to_json(),
            "target": self.task.target_name,
            "is_preferred": bool(self.request.preferred),
            "networks": rows,
            "weights": file_digest(path),
        }


def _remove_states(folder: Path, but: str | None = None) -> None:
    """Remove the files of checkpoints, all or all but one."""
    for path in folder.glob(_STATE.format("*")):
        if path.name != but:
            path.unlink(missing_ok=True)


def request_of(stored: Mapping[str, Any]) -> SupernetRequest:
    """The request of a stored run."""
    space = spaces.get(stored["space"])
    if space.version != stored["space_version"]:
        raise InputError(f"space {space.name} has changed since this supernet was trained")
    settings = from_json(SupernetSettings, stored["settings"])
    archs = tuple(space.from_json(fields) for fields in stored["preferred"])
    digests = stored["data_digest"], stored["start"]
    return SupernetRequest(stored["space"], settings, stored["dataset"], archs, *digests)
