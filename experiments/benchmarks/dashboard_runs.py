"""Writes runs in the real format with made-up numbers, to measure and to test the dashboard.

    python -m experiments.benchmarks.dashboard_runs FOLDER --runs 200 --evaluations 200000

One campaign gets that many evaluations and has no result, so that its journal must be read; every
second one of the others is finished, with the result of a small real campaign.
"""

from __future__ import annotations

import argparse
import random
import shutil
from collections.abc import Iterator
from itertools import islice, product
from pathlib import Path
from typing import Any

from lpzero.discover.candidate import Candidate, is_candidate
from lpzero.discover.discovery import Campaign
from lpzero.discover.hall_of_fame import Tally
from lpzero.discover.settings import Settings
from lpzero.discover.storage import campaign_config
from lpzero.runs.directory import RunDirectory
from lpzero.runs.layout import HALL, HISTORY
from lpzero.sketches.sketch import SketchOptions

_PER_GENERATION = 100
_UNARIES = ("abs", "square", "sqrt", "log", "exp", "relu", "abslog", "sigmoid", "std", "minmax")
_TABLE = {"name": "made-up", "space": "nano-gpt2", "target": "minus loss", "digest": "ab" * 32}


def formulas(rng: random.Random) -> Iterator[str]:
    """Different products of two terms, in a random order."""
    chains = [f"{a}({b}({s}))" for a, b, s in product(_UNARIES, _UNARIES, "AJGHWS")]
    while True:
        one, other, third = rng.sample(chains, 3)
        yield f"mul(sum({one}), mean({other}), last({third}))"


def records(evaluations: int, rng: random.Random) -> Iterator[dict[str, Any]]:
    """The lines of a campaign: a fifth more than evaluations, rejected or repeated."""
    texts = formulas(rng)
    number = done = 0
    while done < evaluations:
        kind = rng.random()
        line: dict[str, Any] = {
            "id": number,
            "generation": max(0, done // _PER_GENERATION),
            "operator": rng.choice(("mutation", "crossover", "neighbour")),
            "parents": [rng.randrange(number + 1)],
            "formula": next(texts),
        }
        if kind < 0.1:
            line["rejected"] = rng.choice(("absorbed", "monotone-whole", "constant-score"))
        elif kind < 0.2:
            line["repeats"] = rng.randrange(number + 1)
        else:
            top = 0.95 - 0.5 / (1 + done / 5000)
            rho = top - abs(rng.gauss(0, 0.2))
            measures = {"rho": rho, "rho_given_params": rho / 2, "rho_within": rho / 3}
            line |= {"key": line["formula"], "complexity": rng.randrange(9, 16)}
            line |= {"fitness": [rho], "train": {_TABLE["name"]: measures}}
            done += 1
        yield line
        number += 1


def write_campaign(folder: Path, evaluations: int, seed: int) -> None:
    """Write a campaign's directory as a killed campaign leaves it."""
    settings = Settings(seed=seed, generations=evaluations // _PER_GENERATION + 10)
    config = campaign_config(settings, [_TABLE], 0, SketchOptions().to_json())
    with RunDirectory(folder, config, False, is_candidate) as directory:
        tally, lines = Tally(), records(evaluations, random.Random(seed))
        while batch := list(islice(lines, 5000)):
            directory.journal.append(batch)
            tally.count([Candidate.from_json(line) for line in batch])
        directory.write_json(HALL, tally.hall.rows([_TABLE["name"]]))
        directory.write_csv(HISTORY, tally.history)


def write_runs(folder: Path, n_runs: int, evaluations: int) -> None:
    """Write the runs; the large one is `large`."""
    write_campaign(folder / "large", evaluations, 0)
    finished = folder / "group-0" / "finished"
    Campaign("nano-gpt2", out=finished, generations=2, population=20, offspring=20, terms=1,
              choose="valid", permutations=0).run()  # fmt: skip
    for number in range(2, n_runs):
        target = folder / f"group-{number % 7}" / f"run-{number:03d}"
        if number % 2:
            shutil.copytree(finished, target)
        else:
            write_campaign(target, 400, number)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--evaluations", type=int, default=200_000)
    given = parser.parse_args()
    write_runs(given.folder, given.runs, given.evaluations)
