"""Compares loops and proxies over several seeds: every run is a search of its own.

A run that never reached the best 1% counts with one evaluation more than it made, so that a mean
exists; `reached` is how many runs reached it. A comparison that has no result yet, or was begun
again with more arms or seeds, is read from the searches in its folder that are finished.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from lpzero import files
from lpzero.arrays import FloatArray
from lpzero.errors import InputError, LPZeroError, RunError
from lpzero.judgement.bootstrap import Interval, draw_counts, percentile_interval
from lpzero.parallel import Lost, stream
from lpzero.runs.config import RunConfig, StoredConfig, read_config, write_config
from lpzero.runs.directory import foreign_name
from lpzero.runs.layout import CONFIG, RESULT, place
from lpzero.runs.run import (
    LiveRun,
    Now,
    Run,
    Stamp,
    read_file,
    report_unexpected_content,
    stamp,
)
from lpzero.search import evaluators
from lpzero.search.constraints import Stopwatch
from lpzero.search.environment import Sampler
from lpzero.search.evaluators import Evaluator
from lpzero.search.request import Request
from lpzero.search.search import Resources, run
from lpzero.search.search_run import finished

COMPARISON = "comparison.json"
KIND = "comparison"
RUNS = "runs"
TOP_SHARE, N_REFERENCE = 0.01, 10_000
_SEED = 1_000_003  # for the reference sample; searches use small seeds
_RESAMPLES = 2000
_LARGEST = 64 << 20  # bytes of a file of a search
_MOST = 100_000  # searches
Result = dict[str, Any]
Trace = Sequence[Mapping[str, Any]]


class LostRunError(LPZeroError):
    """The process of a run died."""


@dataclass(frozen=True)
class Comparison:
    """The results of every run by arm, and the lowest target of the best 1% if it is known."""

    results: Mapping[str, Sequence[Result]]
    threshold: float | None

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of the table, one per arm."""
        return [_row(name, results, self.threshold) for name, results in self.results.items()]

    def to_json(self) -> Result:
        """The evaluator, the rows and the curves, as JSON values."""
        return {
            "threshold": self.threshold,
            "evaluator": next(iter(self.results.values()))[0]["evaluator"],
            "rows": self.rows,
            "curves": curve_rows(self.results),
        }


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
        write_config(out, config)  # from now on it is a run with a page
    todo = [(arm, seed) for arm in arms for seed in range(n_seeds)]
    if out is not None:
        for arm, seed in todo:
            inside = run_folder(out, label(arm.loop, arm.proxy), seed).relative_to(out)
            files.subfolder(out, *inside.parts)
    here = replace(resources, jobs=1, backend="loky", scheduler=None)
    alone = replace(here, label=None, show=_nothing, say=None)
    task = _SearchTask(alone, out)
    done: dict[int, Result] = {}
    with closing(stream(task, todo, resources.workers, resources.label)) as results:
        for index, result in results:
            if isinstance(result, Lost):
                raise LostRunError(f"a run was lost: {result.reason}")
            done[index] = result
    by_arm: dict[str, list[Result]] = {}
    for index, (arm, _) in enumerate(todo):
        by_arm.setdefault(label(arm.loop, arm.proxy), []).append(done[index])
    comparison = Comparison(by_arm, threshold)
    if out is not None:
        files.write_json(out / COMPARISON, {"threshold": threshold, "rows": comparison.rows})
        result = json.loads(json.dumps(comparison.to_json()))
        files.write_sealed(out / RESULT, place(config.hash, RESULT), result)
    return comparison


def comparison_config(arms: Sequence[Request], n_seeds: int) -> RunConfig:
    """The config of a comparison; more arms and seeds may follow."""
    request = {"arms": [arm.to_json() for arm in arms], "seeds": n_seeds}
    return RunConfig(KIND, request, growing=(("arms",), ("seeds",)))


def curve_rows(results: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Mean and interval of the best target of each arm after each number of evaluations."""
    rows = []
    for arm, runs in results.items():
        n = max(run["evaluations"] for run in runs)
        targets = np.array([best_after(run["trace"], n) for run in runs])  # (seeds, n)
        for index, column in enumerate(targets.T):
            low, high = mean_interval(list(column))
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
    stored = read_config(out)
    if stored is None:
        foreign = foreign_name(out)
        if foreign is not None:
            raise RunError(f"{out} contains {foreign} but no comparison: choose another --out")
        return
    stored.check_kind(KIND)
    if not resume:
        raise RunError(
            f"{out} holds a comparison: resume it with --resume, or choose another --out"
        )


def label(loop: str, proxy: str) -> str:
    """The name of an arm in tables and figures."""
    return f"{loop}, {proxy}"


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
        name = label(arm.loop, arm.proxy)
        folder = None if self.out is None else run_folder(self.out, name, seed)
        done = None if folder is None else finished(folder, request.to_json())
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
    return top_threshold(Sampler(space, arm.constraints, clock, made.pool), made)


def _row(name: str, results: Sequence[Result], threshold: float | None) -> dict[str, Any]:
    best = [result["best"]["target"] for result in results]
    row: dict[str, Any] = {
        "arm": name,
        "seeds": len(results),
        "scored": float(np.mean([result["scored"] for result in results])),
        "evaluations": float(np.mean([result["evaluations"] for result in results])),
        "best": float(np.mean(best)),
        "best_ci": mean_interval(best),
    }
    if threshold is not None:
        reached = [evaluations_to_reach(r["trace"], threshold) for r in results]
        needed = [
            float(result["evaluations"] + 1 if n is None else n)
            for n, result in zip(reached, results, strict=True)
        ]
        row["reached"] = sum(n is not None for n in reached)
        row["needed"] = float(np.mean(needed))
        row["needed_ci"] = mean_interval(needed)
    return row


def best_after(trace: Trace, n: int) -> FloatArray:
    """The best target after 1 to n evaluations (n,), constant after the search's end."""
    targets = [e["target"] for e in trace if e["evaluations"] and e.get("target") is not None]
    if not targets:
        raise InputError("nothing was evaluated: the trace has no best target")
    running = np.maximum.accumulate(targets)[:n]
    return np.concatenate([running, np.full(n - len(running), running[-1])])


def evaluations_to_reach(trace: Trace, threshold: float) -> int | None:
    """The evaluations until a target reached the threshold; None if none did."""
    for entry in trace:
        target = entry.get("target")
        if entry["evaluations"] and target is not None and target >= threshold:
            return int(entry["evaluations"])
    return None


def top_threshold(sampler: Sampler, evaluator: Evaluator) -> float:
    """The lowest target of the best 1% of the pool, or of a large fixed sample of the space."""
    if not evaluator.is_free:
        raise InputError(f"evaluator {evaluator.name} is too expensive for a reference sample")
    rng = random.Random(_SEED)
    pool = sampler.pool
    if pool is None:
        pool = sampler.draw(N_REFERENCE, lambda: sampler.space.sample(rng))
    targets = np.sort(np.array(list(evaluator.evaluate(pool))))[::-1]
    return float(targets[max(1, round(TOP_SHARE * len(targets))) - 1])


def mean_interval(values: Sequence[float]) -> Interval:
    """The bootstrap 95% interval of a mean."""
    counts = draw_counts(len(values), _RESAMPLES)
    return percentile_interval(counts @ np.asarray(values, float) / len(values))


class ComparisonRun(Run):
    """Loops and proxies compared over seeds; the searches themselves are in its folder `runs`."""


def read(config: StoredConfig) -> ComparisonRun:
    """The comparison with that config; a remark if not every search is finished."""
    remarks: list[str] = []
    result = read_file(config, RESULT, remarks)
    if result is not None and _is_whole(result, config.request):
        return ComparisonRun(config, result, remarks)
    results: dict[str, list[Result]] = {}
    total = 0
    for name, folder, request in searches(config):
        total += 1
        done = _finished(folder, request)
        if done is not None:
            results.setdefault(name, []).append(done)
    n_done = sum(map(len, results.values()))
    remarks.append(
        f"The comparison is not finished: {n_done:,} of {total:,} searches are. Run its command"
        " again with --resume."
    )
    rest = Comparison(results, None).to_json() if results else None
    return ComparisonRun(config, rest, remarks)


def searches(config: StoredConfig) -> Iterator[tuple[str, Path, Mapping[str, Any]]]:
    """The arm, the folder and the request of every search that the comparison consists of."""
    arms, seeds = config.request["arms"], config.request["seeds"]
    if len(arms) * seeds > _MOST:
        raise ValueError(f"{len(arms):,} arms and {seeds:,} seeds are too many")
    for arm in arms:
        name = label(arm["loop"], arm["proxy"])
        for seed in range(seeds):
            yield name, run_folder(config.folder, name, seed), {**arm, "seed": seed}


def _is_whole(result: Mapping[str, Any], request: Mapping[str, Any]) -> bool:
    """Whether the result is about all arms and seeds that were asked for last."""
    asked = {label(arm["loop"], arm["proxy"]): request["seeds"] for arm in request["arms"]}
    return {row["arm"]: row["seeds"] for row in result["rows"]} == asked


def _finished(folder: Path, request: Mapping[str, Any]) -> dict[str, Any] | None:
    """The result of that search; None if it is not there, or is not a file of a usual size."""
    is_usual = all(_is_usual(folder / name) for name in (CONFIG, RESULT))
    return finished(folder, request) if is_usual else None


def _is_usual(path: Path) -> bool:
    """Whether it is a regular file, not behind a link, of a size that results have."""
    try:
        about = os.stat(path, follow_symlinks=False)
        is_linked = path.parent.is_symlink() or path.parent.parent.is_symlink()
    except OSError:
        return False
    return stat.S_ISREG(about.st_mode) and not is_linked and about.st_size <= _LARGEST


class LiveComparison(LiveRun):
    """The comparison as it was last read; it is read again when a search has ended."""

    def __init__(self, config: StoredConfig) -> None:
        super().__init__(config)
        self._parts: Stamp = ()

    def update(self, seconds: float) -> Run | None:
        """The comparison as it is now."""
        with report_unexpected_content(self.config.folder):
            folders = [folder for _, folder, _ in searches(self.config)]
        parts = tuple(part for folder in folders for part in stamp(folder, (RESULT,)))
        if parts != self._parts:
            self._parts, self._stamp = parts, None
        return super().update(seconds)

    def now(self) -> Now:
        """Searches that are done of those that were asked for."""
        done = sum(inode != 0 for inode, _, _ in self._parts)
        return Now({"searches": f"{done:,} of {len(self._parts):,}"})
