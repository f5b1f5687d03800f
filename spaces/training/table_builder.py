"""Makes a nano table: trains every architecture of a plan, in parallel and resumably.

Each finished run is one line of a journal in the work folder. A killed build goes on with the
runs that have no line yet; the table is written when the last one is there.
"""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import random
import tempfile
import warnings
from collections.abc import Callable, Generator
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import spaces
from spaces.errors import TableError
from spaces.training.recipes import TablePlan

SCHEMA = 1
LICENCE = "Apache-2.0"


def sample_architectures(plan: TablePlan) -> list[Any]:
    """The plan's architectures: distinct, drawn from its sampling seed; a prefix stays the same."""
    space = spaces.get(plan.name)
    rng = random.Random(plan.sampling_seed)
    archs: dict[Any, None] = {}
    while len(archs) < plan.n_archs:
        archs[space.sample(rng)] = None
    return list(archs)


@lru_cache(maxsize=1)
def _task(name: str, context: int) -> Any:
    from spaces.training.tasks import TASKS

    return TASKS[name](context)


def train_one(plan: TablePlan, index: int, seed: int) -> dict[str, Any]:
    """One run as a journal line; `index` counts the plan's architectures."""
    from spaces.training.trainer import train

    space = spaces.get(plan.name)
    arch = sample_architectures(plan)[index]
    run = train(space, arch, _task(plan.task, space.batch_shape[1]), plan.recipe, seed)
    return {"index": index, **dataclasses.asdict(run)}


def build(plan: TablePlan, folder: Path, jobs: int, report: Callable[[int, int], None]) -> Path:
    """Train what is missing and write `<folder>/<name>.json`; the path of the table.

    `report(done, total)` is called after every run.
    """
    from joblib import Parallel, delayed

    folder.mkdir(parents=True, exist_ok=True)
    journal = folder / f"{plan.name}.jsonl"
    header = _header(plan)
    runs = _read_journal(journal, header)
    wanted = [(i, seed) for i in range(plan.n_archs) for seed in plan.seeds_of(i)]
    # Repeated architectures first: the noise is known before the rest is paid for.
    missing = [pair for pair in wanted if pair not in runs]
    with journal.open("a", encoding="utf-8") as lines:
        if lines.tell() == 0:
            _append(lines, header)
        pool = Parallel(n_jobs=jobs, return_as="generator_unordered")
        results: Generator[dict[str, Any], None, None] = pool(
            delayed(train_one)(plan, index, seed) for index, seed in missing
        )
        # Closed at once when interrupted: abandoned, joblib's generator complains at exit.
        with warnings.catch_warnings(), closing(results):
            warnings.filterwarnings("ignore", message=".*have been cancelled")
            # loky replaces workers that have grown, as they do by importing torch, and says so.
            warnings.filterwarnings("ignore", message="A worker stopped while some jobs")
            for run in results:
                _append(lines, run)
                runs[run["index"], run["seed"]] = run
                report(len(runs), len(wanted))
    table = folder / f"{plan.name}.json"
    write_atomically(table, to_table(plan, runs, header))
    return table


def _header(plan: TablePlan) -> dict[str, Any]:
    from spaces.batches import pydoc_digest

    # Through JSON, so that it compares equal to what a journal gives back.
    fields = {"plan": dataclasses.asdict(plan), "text_sha256": pydoc_digest()}
    header: dict[str, Any] = json.loads(json.dumps(fields))
    return header


def _append(lines: Any, entry: dict[str, Any]) -> None:
    lines.write(json.dumps(entry, sort_keys=True) + "\n")
    lines.flush()
    os.fsync(lines.fileno())


def _read_journal(path: Path, header: dict[str, Any]) -> dict[tuple[int, int], dict[str, Any]]:
    if not path.exists() or path.stat().st_size == 0:
        return {}
    content = path.read_text(encoding="utf-8")
    whole = content[: content.rfind("\n") + 1]
    if whole != content:
        # The last line was torn by a kill: drop it, its run is simply done again.
        write_atomically(path, whole)
    entries = [json.loads(line) for line in whole.splitlines()]
    if entries and entries[0] != header:
        raise TableError(
            f"{path} was made by another plan or from another text: "
            "choose another --work folder or remove it"
        )
    return {(entry["index"], entry["seed"]): entry for entry in entries[1:]}


def to_table(
    plan: TablePlan, runs: dict[tuple[int, int], dict[str, Any]], header: dict[str, Any]
) -> str:
    """The table as JSON text, one row a line."""
    from spaces.training.tasks import TASKS

    space = spaces.get(plan.name)
    rows = []
    for index, arch in enumerate(sample_architectures(plan)):
        of_arch = [runs[index, seed] for seed in plan.seeds_of(index)]
        kept = [
            {
                "seed": run["seed"],
                "target": run["target"],
                "seconds": round(run["seconds"], 2),
                "steps": run["steps"],
            }
            for run in of_arch
        ]
        target = float(np.mean([run["target"] for run in kept[: plan.n_seeds]]))
        rows.append({"arch": space.to_json(arch), "target": target, "runs": kept})
    head = {
        "schema": SCHEMA,
        "name": plan.name,
        "space": plan.name,
        "target": TASKS[plan.task].target_name,
        "licence": LICENCE,
        "provenance": header | _versions(space),
        "noise": noise(plan, runs),
    }
    lines = ",\n".join(json.dumps(row) for row in rows)
    return json.dumps(head, indent=1)[:-2] + ',\n "rows": [\n' + lines + "\n]}\n"


def noise(plan: TablePlan, runs: dict[tuple[int, int], dict[str, Any]]) -> dict[str, Any]:
    """The noise ceiling: how alike two independent sets of trainings rank the same architectures.

    `rho_between_targets` compares the mean over seeds 0 .. k - 1, which is the target, with the
    mean over the next k seeds, on the repeated architectures; `rho_between_seeds` single seeds.
    """
    from scipy.stats import spearmanr

    def rho(first: range, second: range) -> float:
        a, b = (
            [float(np.mean([runs[i, s]["target"] for s in seeds])) for i in range(plan.n_repeated)]
            for seeds in (first, second)
        )
        return round(float(spearmanr(a, b).statistic), 4)

    k, seeds = plan.n_seeds, plan.seeds_of(0)
    return {
        "n": plan.n_repeated,
        "rho_between_targets": rho(range(k), range(k, 2 * k)),
        "rho_between_seeds": {
            f"{a}-{b}": rho(range(a, a + 1), range(b, b + 1)) for b in seeds for a in range(b)
        },
    }


def _versions(space: Any) -> dict[str, Any]:
    """What made the table: the code of the space and of the trainer, Python, torch."""
    import torch

    from spaces.training.trainer import VERSION

    return {
        "space_version": space.version,
        "trainer_version": VERSION,
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def write_atomically(path: Path, text: str) -> None:
    """The file with this text, or as it was: never half of it."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.chmod(temporary, 0o644)
    os.replace(temporary, path)
