"""The whole pipeline at nano scale: discover a proxy, search with it, train what it selects.

    python -m experiments.nano_story.run --out runs/nano_story --jobs 2

A formula is discovered on the nano-gpt2 table. ETAS then searches the space nano-gpt2 for the best
architecture of at most the table's median number of parameters, training its candidates. It is
compared with ETAS with other proxies, ETAS without a proxy and random search, which train as many.
Every winner is retrained from seeds that no search used. After an interruption the same command
continues.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from experiments.measured import prints_measured
from experiments.nano_story.winners import Winners
from experiments.reproduction import markdown
from experiments.student import half_width
from lpzero.cli.options import jobs_option
from lpzero.discover.discovery import Campaign
from lpzero.judgement import counters
from lpzero.report import style
from lpzero.report.drawn_chart import draw
from lpzero.report.figures.convergence import search_curves
from lpzero.search import Constraints, Request, Resources, run
from lpzero.search.comparison import curve_rows
from spaces.tables import load

TABLE = "nano-gpt2"
ITERATIONS = 3  # of three trainings each, after the three parents


@dataclass(frozen=True, slots=True)
class Arm:
    """A loop with a proxy."""

    name: str
    loop: str
    proxy: str
    constants: dict[str, int]


def arms(formula: str) -> list[Arm]:
    """The arms that are compared; each trains the same number of architectures in a search."""
    budget = {"iterations": ITERATIONS}
    proxies = {"discovered": formula, "ntsr": "ntsr", "parameters": "parameters", "none": "none"}
    found = [Arm(f"etas, {name}", "etas", proxy, budget) for name, proxy in proxies.items()]
    n_trainings = 3 + 3 * ITERATIONS
    return [*found, Arm("random", "random", "none", {"evaluations": n_trainings})]


@click.command()
@click.option(
    "--seeds",
    type=click.IntRange(2),
    default=5,
    show_default=True,
    help="The number of searches per arm.",
)
@click.option(
    "--training-steps",
    type=int,
    help="Training steps, fewer than the table's recipe for a quick run.",
)
@click.option("--out", type=Path, default=Path("runs/nano_story"), show_default=True)
@jobs_option
@prints_measured
def main(seeds: int, training_steps: int | None, out: Path, jobs: int) -> None:
    """Print what each arm found and write it to OUT."""
    table = load(TABLE)
    limit = int(np.median(counters.score("parameters", table)))
    formula = discovered(out / "campaign", jobs)
    print(f"discovered on {TABLE}: {formula}; at most {limit:,} parameters\n")
    found: dict[str, list[dict[str, Any]]] = {}
    # Seed by seed, so that an early end leaves every arm the same number of searches.
    for seed in range(seeds):
        for arm in arms(formula):
            request = Request(
                table.space.name,
                arm.loop,
                arm.proxy,
                seed,
                "training",
                training_steps=training_steps,
                constraints=Constraints({"parameters": (None, limit)}),
                constants=arm.constants,
            )
            place = out / arm.name.replace(", ", "-") / str(seed)
            result = run(request, Resources(jobs=jobs), place, resume=True).result
            found.setdefault(arm.name, []).append(result)
            print(f"seed {seed}  {arm.name:17s} {result['best']['target']:.4f}", flush=True)
    winners = Winners(table.space, training_steps, out / "again.json")
    winners.train([r["best"]["arch"] for results in found.values() for r in results], jobs)
    rows = [row(name, results, winners) for name, results in found.items()]
    rows.sort(key=lambda line: -line["trained_again"])
    (out / "story.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    text = markdown(
        rows,
        (
            "arm",
            "trainings",
            "found",
            "found_half_width",
            "trained_again",
            "trained_again_half_width",
            "parameters",
        ),
    )
    (out / "story.md").write_text(text, encoding="utf-8")
    style.save(draw(search_curves(curve_rows(found), "target", threshold=None)), out / "story.png")
    print("\n" + text)


def discovered(folder: Path, jobs: int) -> str:
    """The formula that a campaign with our defaults chooses on the table's train and valid rows."""
    best = Campaign(TABLE, out=folder, resume=True, jobs=jobs).run().best_
    formula: str = best["formula"]
    return formula


def row(name: str, results: Sequence[dict[str, Any]], winners: Winners) -> dict[str, Any]:
    """The results of an arm over its seeds: as measured in the searches, and retrained."""
    bests = [result["best"] for result in results]
    line: dict[str, Any] = {"arm": name, "trainings": results[0]["evaluations"]}
    again = [winners.target(best["arch"]) for best in bests]
    for key, targets in (("found", [best["target"] for best in bests]), ("trained_again", again)):
        line[key] = float(np.mean(targets))
        line[f"{key}_half_width"] = half_width(targets)
    return {**line, "parameters": int(np.mean([best["parameters"] for best in bests]))}


if __name__ == "__main__":
    main()
