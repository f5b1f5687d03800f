"""Compares loops and proxies over several seeds: every run is a search of its own.

A run that never reached the best 1% counts with one evaluation more than it made, so that a mean
exists; `reached` is how many runs reached it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from lpzero import files
from lpzero.errors import InputError, LPZeroError, RunError
from lpzero.parallel import Lost, stream
from lpzero.runs import command
from lpzero.runs.config import RunConfig, write_config
from lpzero.runs.layout import LOCK, RESULT, place
from lpzero.search import evaluators, metrics
from lpzero.search.constraints import Stopwatch
from lpzero.search.request import Request
from lpzero.search.sampler import Sampler
from lpzero.search.search import Resources, run
from lpzero.search.storage import finished

COMPARISON = "comparison.json"
KIND = "comparison"
RUNS = "runs"
Result = dict[str, Any]


class LostRunError(LPZeroError):
    """The process of a run died."""


@dataclass(frozen=True)
class Comparison:
    """The rows of the table, one per arm, and the results of every run."""

    rows: list[dict[str, Any]]
    results: dict[str, list[Result]]
    threshold: float | None


def compare(
    arms: Sequence[Request],
    n_seeds: int,
    resources: Resources,
    out: Path | None = None,
    resume: bool = False,
) -> Comparison:
    """Run every arm with seeds 0 to n - 1 and summarise; finished runs are not repeated."""
    if any(arm.evaluator == evaluators.PROXY for arm in arms):
        raise InputError(
            "scores of different proxies are not comparable: name an evaluator with --evaluator"
        )
    if out is not None:
        _check_free(out, resume)
        files.sweep(out.rglob(f".*{files.TEMPORARY}"))
    threshold = _threshold(arms[0], resources)
    config = comparison_config(arms, n_seeds)
    if out is not None:
        (out / RUNS).mkdir(parents=True, exist_ok=True)
        write_config(out, config)  # from now on it is a run with a page
        command.store(out, KIND, config.hash)
    todo = [(arm, seed) for arm in arms for seed in range(n_seeds)]
    here = replace(resources, jobs=1, backend="loky", scheduler=None)
    alone = replace(here, label=None, show=_nothing, say=None)
    task = _SearchTask(alone, out)
    found: list[Result | None] = [None] * len(todo)
    with closing(stream(task, todo, resources.workers, resources.label)) as results:
        for index, result in results:
            if isinstance(result, Lost):
                raise LostRunError(f"a run was lost: {result.reason}")
            found[index] = result
    by_arm: dict[str, list[Result]] = {}
    for (arm, _), one in zip(todo, found, strict=True):
        assert one is not None
        by_arm.setdefault(label(arm), []).append(one)
    rows = [_row(name, results, threshold) for name, results in by_arm.items()]
    found_all = Comparison(rows, by_arm, threshold)
    if out is not None:
        files.write_json(out / COMPARISON, {"threshold": threshold, "rows": rows})
        result = json.loads(json.dumps(summary(by_arm, threshold)))
        files.write_sealed(out / RESULT, place(config.hash, RESULT), result)
    return found_all


def comparison_config(arms: Sequence[Request], n_seeds: int) -> RunConfig:
    """The config of a comparison; more arms and seeds may follow."""
    request = {"arms": [arm.to_json() for arm in arms], "seeds": n_seeds}
    return RunConfig(KIND, request, growing=(("arms",), ("seeds",)))


def summary(results: Mapping[str, Sequence[Result]], threshold: float | None) -> Result:
    """Rows and curves of the arms from the results of their searches, for a page."""
    return {
        "threshold": threshold,
        "rows": [_row(name, found, threshold) for name, found in results.items()],
        "evaluator": next(iter(results.values()))[0]["evaluator"],
        "curves": curve_rows(results),
    }


def curve_rows(results: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Mean and interval of the best target of each arm after each number of evaluations."""
    rows = []
    for arm, runs in results.items():
        n = max(run["evaluations"] for run in runs)
        found = np.array([metrics.best_after(run["trace"], n) for run in runs])  # (seeds, n)
        for index, column in enumerate(found.T):
            low, high = metrics.mean_interval(list(column))
            rows.append(
                {
                    "arm": arm,
                    "evaluations": index + 1,
                    "mean": float(column.mean()),
                    "low": low,
                    "high": high,
                }
            )
    return rows


def _check_free(out: Path, resume: bool) -> None:
    """Raise RunError if the directory has other files, or a comparison and no `resume`."""
    found = {path.name for path in out.iterdir()} if out.is_dir() else set()
    found.discard(LOCK)
    if found and RUNS not in found:
        raise RunError(f"{out} contains {min(found)} but no comparison: choose another --out")
    if found and not resume:
        raise RunError(
            f"{out} holds a comparison: resume it with --resume, or choose another --out"
        )


def label(arm: Request) -> str:
    """The name of an arm in tables and figures."""
    return f"{arm.loop}, {arm.proxy}"


def run_folder(out: Path, arm: str, seed: int) -> Path:
    """The directory of one run: a readable name, and a digest because formulas are long."""
    words = re.sub(r"[^a-z0-9]+", "-", arm.lower()).strip("-")[:40]
    digest = hashlib.sha256(arm.encode()).hexdigest()[:8]
    return out / RUNS / f"{words}-{digest}" / str(seed)


@dataclass(frozen=True, slots=True)
class _SearchTask:
    """Runs in a worker: one search."""

    resources: Resources
    out: Path | None

    def __call__(self, item: tuple[Request, int]) -> Result:
        arm, seed = item
        request = replace(arm, seed=seed)
        folder = None if self.out is None else run_folder(self.out, label(arm), seed)
        done = None if folder is None else finished(folder, request)
        return done or run(request, self.resources, folder, resume=True).result


def _nothing(entry: Any) -> None:
    pass


def _threshold(arm: Request, resources: Resources) -> float | None:
    space = arm.made_space
    made = evaluators.make(arm.evaluator, space, arm.table, arm.training_steps, resources.data)
    assert made is not None
    if not made.is_free:
        return None
    clock = Stopwatch(space, resources.device)
    arm.constraints.check(space, clock, made.pool)
    if arm.constraints.needs_latency and made.pool is None:
        return None  # timing thousands of networks would take longer than the searches
    return metrics.top_threshold(Sampler(space, arm.constraints, clock, made.pool), made)


def _row(name: str, results: Sequence[Result], threshold: float | None) -> dict[str, Any]:
    best = [result["best"]["target"] for result in results]
    row: dict[str, Any] = {
        "arm": name,
        "seeds": len(results),
        "scored": float(np.mean([result["scored"] for result in results])),
        "evaluations": float(np.mean([result["evaluations"] for result in results])),
        "best": float(np.mean(best)),
        "best_ci": metrics.mean_interval(best),
    }
    if threshold is not None:
        reached = [metrics.evaluations_to_reach(r["trace"], threshold) for r in results]
        needed = [
            float(result["evaluations"] + 1 if n is None else n)
            for n, result in zip(reached, results, strict=True)
        ]
        row["reached"] = sum(n is not None for n in reached)
        row["needed"] = float(np.mean(needed))
        row["needed_ci"] = metrics.mean_interval(needed)
    return row
