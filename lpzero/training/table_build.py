"""Builds a table by training every architecture of a plan, in a run's directory.

Each finished training is a line of the journal. A resumed build runs the trainings that have no
line yet; `table.json` is written after the last one.
"""

from __future__ import annotations

import dataclasses
import json
import math
import shlex
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

from lpzero import files
from lpzero.errors import LPZeroError
from lpzero.parallel import Lost, Workers, stream
from lpzero.runs.config import RunConfig, StoredConfig
from lpzero.runs.directory import RunDirectory
from lpzero.runs.journal import JournalFollower
from lpzero.runs.layout import JOURNAL, TABLE, place
from lpzero.runs.run import LiveRun, Now, Run
from spaces.training.recipes import PLANS, Plan
from spaces.training.table_rows import to_table, train_one
from spaces.training.trainer import POINTS

KIND = "table build"
_FIELDS = {"index", "seed", "target", "seconds"}
# A user's own training has neither steps nor losses that we know of; journals of earlier versions
# have no architectures and no curves.
_OPTIONAL = {"steps", "arch", "curve"}


class TrainingLostError(LPZeroError, RuntimeError):
    """The process of a training died; running the same command again continues."""


def build_config(plan: Plan) -> RunConfig:
    """The config of a build: the plan, and what its trainings depend on."""
    return RunConfig(KIND, json.loads(json.dumps(plan.request())))


def is_training(record: dict[str, Any], number: int) -> bool:
    """Whether the record is valid in a build's journal: a finite target, or why there is none."""
    has_failed = record.get("target", 0) is None
    if record.keys() - _OPTIONAL != (_FIELDS | {"failure"} if has_failed else _FIELDS):
        return False
    if not is_curve(record.get("curve", [])):
        return False
    whole = (record["index"], record["seed"], record.get("steps", 0))
    if not all(type(number) is int for number in whole):
        return False
    if has_failed:
        return type(record["seconds"]) is float and type(record["failure"]) is str
    finite = all(type(record[name]) is float for name in ("target", "seconds"))
    return finite and math.isfinite(record["target"])


def is_curve(value: Any) -> bool:
    """Whether the value is a learning curve: [steps done, loss] with growing steps."""
    if type(value) is not list or len(value) > POINTS:
        return False
    if not all(type(point) is list and len(point) == 2 for point in value):
        return False
    steps = [step for step, _ in value]
    return (
        all(type(step) is int for step in steps)
        and all(one < other for one, other in pairwise(steps))
        and all(type(loss) is float and math.isfinite(loss) for _, loss in value)
    )


def build_table(
    plan: Plan,
    folder: Path,
    workers: Workers | None = None,
    label: str | None = None,
    lock: bool = True,
) -> Path:
    """Run the missing trainings, write the table and return its path."""
    config = build_config(plan)
    with RunDirectory(folder, config, True, is_training, lock) as directory:
        directory.log_remarks()
        journal = directory.journal
        runs = {(run["index"], run["seed"]): run for run in journal.records()}
        journal.go_to(len(journal))
        wanted = [(i, seed) for i in range(plan.n_archs) for seed in plan.seeds_of(i)]
        # Repeated architectures first: their noise is known before the rest is trained.
        missing = [pair for pair in wanted if pair not in runs]
        with closing(stream(_TrainTask(plan), missing, workers, label)) as results:
            for index, run in results:
                if isinstance(run, Lost):
                    raise TrainingLostError(f"training {missing[index]} was lost: {run.reason}")
                journal.append([run])
                journal.sync()
                runs[run["index"], run["seed"]] = run
        files.write_text(folder / TABLE, to_table(plan, runs, dict(config.request)))
    return folder / TABLE


@dataclasses.dataclass(frozen=True, slots=True)
class _TrainTask:
    """Runs in a worker: one training."""

    plan: Plan

    def __call__(self, item: tuple[int, int]) -> dict[str, Any]:
        return train_one(self.plan, *item)


def read(config: StoredConfig) -> Run:
    """The build with that config; a remark if the table is not finished."""
    is_finished = (config.folder / TABLE).exists()
    name = str(config.request["plan"].get("name", ""))
    resume = "run the same command again to continue it."
    if name in PLANS:  # the plan of a user's space has an address instead, which names code
        words = ["lpzero", "train", name, "--out", str(config.folder)]
        resume = f"resume it with: {shlex.join(words)}"
    remarks = [] if is_finished else [f"The table is not finished: {resume}"]
    return Run(config, None, remarks)


class LiveBuild(LiveRun):
    """The build as it was last read."""

    def __init__(self, config: StoredConfig) -> None:
        super().__init__(config)
        path = config.folder / JOURNAL
        self._journal = JournalFollower(path, is_training, place(config.hash, JOURNAL))
        self._forget()

    def _forget(self) -> None:
        self._done = self._failed = 0
        self._seconds = 0.0

    def update(self, seconds: float) -> Run | None:
        """The build with what is new."""
        piece = self._journal.read()
        if piece.is_first:
            self._forget()
        for record in piece.records:
            self._done += 1
            self._failed += record["target"] is None
            self._seconds += record["seconds"]
        return super().update(seconds)

    def now(self) -> Now:
        """Trainings done of those planned, failures, and the mean time of one."""
        total = _planned(self.config.request.get("plan"))
        of = f" of {total:,}" if total else ""
        facts = {"trainings": f"{self._done:,}{of}", "failed": f"{self._failed:,}"}
        if self._done:
            facts["seconds of a training"] = f"{self._seconds / self._done:.1f}"
        return Now(facts)


def _planned(plan: Any) -> int | None:
    """The number of trainings of a plan; None if it cannot be read."""
    try:
        repeated = plan["n_repeated"] * plan["n_repeated_seeds"]
        return int(repeated + (plan["n_archs"] - plan["n_repeated"]) * plan["n_seeds"])
    except (KeyError, TypeError, ValueError):
        return None
