"""Figures 6, 7 and 13 and Table 5 of LPZero reproduced over seeds, with the regret.

    python -m experiments.lpzero.evolution --table flexibert --out runs/evolution --jobs 2

Every run is a campaign with its own directory; after an interruption the same command continues.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from experiments.lpzero import optimum
from experiments.lpzero.arms import ARMS, ARMS_ONE, Arm
from experiments.lpzero.curves import draw
from experiments.measured import prints_measured
from experiments.student import half_width
from lpzero import files
from lpzero.cli.output import print_rows
from lpzero.discover.discovery import Campaign
from lpzero.judgement.correlation import spearman
from lpzero.judgement.counters import score
from lpzero.runs import layout


@prints_measured
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", default="flexibert")
    parser.add_argument("--out", type=Path, default=Path("runs/evolution"))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--seeds-one", type=int, default=20)
    given = parser.parse_args()
    out = given.out / given.table
    _run(ARMS_ONE, range(given.seeds_one), given, out / "one")
    reference = Campaign(given.table, unaries=1)
    best = _once(out / "optimum-one.json", lambda: optimum.of_chains_of_one(reference))
    rows = [_share(arm, out / "one", given.seeds_one, best) for arm in ARMS_ONE]
    _publish(out / "table-one.csv", rows, f"{given.table}: chains of one, optimum {best:.4f}")

    _run(ARMS, range(given.seeds), given, out / "two")
    reference = Campaign(given.table, preset="paper")
    best = _once(
        out / "optimum-two.json",
        lambda: optimum.of_chains_of_two(reference, out / "exhaust-two", given.jobs),
    )
    rows = [_line(arm, out / "two", given.seeds, best, _parameters(reference)) for arm in ARMS]
    _publish(out / "table.csv", rows, f"{given.table}: chains of two, optimum {best:.4f}")
    draw(ARMS, out / "two", given.seeds, best, out / "curves.csv", out / "curves.png")


def place(root: Path, arm: Arm, seed: int) -> Path:
    """The directory of one run."""
    return root / arm.name.replace(" ", "-").replace(",", "") / str(seed)


def _run(arms: Sequence[Arm], seeds: Sequence[int], given: Any, root: Path) -> None:
    """Run every arm with every seed, except those that are done."""
    todo = [(arm, seed) for seed in seeds for arm in arms]
    joblib.Parallel(given.jobs, verbose=5)(
        joblib.delayed(_campaign)(given.table, arm, seed, place(root, arm, seed))
        for arm, seed in todo
        if not (place(root, arm, seed) / layout.RESULT).exists()
    )


def _campaign(table: str, arm: Arm, seed: int, out: Path) -> None:
    Campaign(table, preset=arm.preset, out=out, resume=True, seed=seed, **arm.settings).run()


def _line(arm: Arm, root: Path, n_seeds: int, best: float, parameters: float) -> dict[str, Any]:
    runs = [place(root, arm, seed) for seed in range(n_seeds)]
    results = [_read(run / layout.RESULT) for run in runs]
    fitness = [max(line["fitness"][0] for line in result["top"]) for result in results]
    in_space = arm.settings.get("unaries", 2) == 2
    return {
        "arm": arm.name,
        "best rho on 50": _interval(fitness),
        "rho test": _interval([result["best"]["rho"]["test"] for result in results]),
        "regret": f"{best - np.mean(fitness):.4f}" if in_space else "-",
        "winning rate": _interval([_winning(run, parameters) for run in runs]),
        "rejected": _percent(results, lambda r: sum(r["rejected"].values()) / r["tried"]),
        "repeats": _percent(results, lambda r: r["repeats"] / r["tried"]),
        "seconds": f"{np.mean([_read(run / layout.TIMING)['seconds'] for run in runs]):.1f}",
    }


def _share(arm: Arm, root: Path, n_seeds: int, best: float) -> dict[str, Any]:
    results = [_read(place(root, arm, seed) / layout.RESULT) for seed in range(n_seeds)]
    fitness = [max(line["fitness"][0] for line in result["top"]) for result in results]
    reached = sum(value >= best - 1e-9 for value in fitness)
    return {
        "arm": arm.name,
        "evaluations": int(np.mean([result["evaluated"] for result in results])),
        "reached the optimum": f"{reached} of {n_seeds}",
        "mean regret": f"{best - np.mean(fitness):.4f}",
        "largest regret": f"{best - min(fitness):.4f}",
    }


def _winning(run: Path, parameters: float) -> float:
    """The share of evaluated formulas that rank better than the number of parameters."""
    lines = [json.loads(line) for line in (run / layout.JOURNAL).read_text().splitlines()]
    evaluated = [line for line in lines if "key" in line]
    return sum(line.get("fitness", [0])[0] > parameters for line in evaluated) / len(evaluated)


def _parameters(found: Campaign) -> float:
    fitness = found.objective.tables_fitness[0]
    counted = score("parameters", fitness.table)[fitness.rows]
    return spearman(counted, fitness.table.targets[fitness.rows])


def _interval(values: Sequence[float]) -> str:
    """Mean and Student's 95% half-width."""
    return f"{np.mean(values):.4f} ± {half_width(values):.4f}"


def _percent(results: Sequence[dict[str, Any]], of: Callable[[dict[str, Any]], float]) -> str:
    return f"{np.mean([of(result) for result in results]):.0%}"


def _once(path: Path, compute: Callable[[], float]) -> float:
    if not path.exists():
        files.write_json(path, {"optimum": compute()})
    return float(_read(path)["optimum"])


def _read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text()))


def _publish(path: Path, rows: Sequence[dict[str, Any]], title: str) -> None:
    files.write_csv(path, rows)
    print_rows(rows, "table", title=title)
    print()


if __name__ == "__main__":
    main()
