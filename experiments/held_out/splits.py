"""The formula chosen on half of a table, tested on rows it has not seen, over several splits.

For each split: every formula with chains of two is measured on the training rows, the best of
each reduction is chosen, and only then are the test rows opened.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

import click
import numpy as np

from experiments.measured import prints_measured
from lpzero.cli.options import cache_option, data_option, format_option, jobs_option
from lpzero.cli.output import note, print_rows
from lpzero.exhaust import ExhaustSettings, Query, choose, exhaust
from lpzero.judgement import counters
from lpzero.judgement.table import TableJudge
from lpzero.parallel import Workers
from lpzero.scores.values import Values
from lpzero.sketches.builder import Builder, sketches
from lpzero.sketches.store import Store, cache_folder
from primitives.statistics import gradient_statistics
from spaces.tables import load, split

SETTINGS = ("flexibert", "flexibert-upstream", "gpt2-wt103")
# Every other setting is the table of that name in its own space.
IN_SPACE = {"flexibert-upstream": ("flexibert", "flexibert-upstream")}
QUERIES = {
    "sum or mean": Query(top=1),
    "sum": Query(reduction="sum", top=1),
    "mean": Query(reduction="mean", top=1),
    "best within groups": Query(by="rho_within", top=1),
    "best given parameters": Query(by="rho_given_params", top=1),
    "forward only": Query(without=gradient_statistics(), top=1),
}


@click.command()
@click.option("--setting", "names", multiple=True, default=SETTINGS, show_default=True)
@click.option("--splits", default=5, show_default=True)
@click.option("--unaries", type=click.IntRange(1, 2), default=2, show_default=True)
@click.option("--out", default="runs/splits", show_default=True)
@cache_option
@jobs_option
@format_option
@data_option
@prints_measured
def main(
    names: tuple[str, ...],
    splits: int,
    unaries: int,
    out: str,
    cache: str | None,
    jobs: int,
    form: str,
    data: str | None,
) -> None:
    """Print medians over the splits, of the chosen formulas and of the counters."""
    asked = ExhaustSettings(unaries, workers=Workers(jobs), progress=True)
    for name in names:
        table_name, space = IN_SPACE.get(name, (name, None))
        table = load(table_name, data, space)
        store = Store(cache_folder(cache))
        found = sketches(table, Builder(store=store, workers=Workers(jobs)))
        lines: dict[str, list[dict[str, Any]]] = {}
        for seed in range(splits):
            folder = Path(out, f"{name}-{unaries}-split{seed}")
            for key, line in one_split(table, found, seed, folder, asked).items():
                lines.setdefault(key, []).append(line)
        rows = [summary(key, of_splits) for key, of_splits in lines.items()]
        print_rows(rows, form, f"{name}: medians over {splits} splits, range in brackets")
        note(
            f"{name}, split {i}, {key}: {line['formula']}"
            for key in QUERIES
            for i, line in enumerate(lines[key])
        )


def one_split(
    table: Any, found: Any, seed: int, folder: Path, asked: ExhaustSettings
) -> dict[str, dict[str, Any]]:
    """The chosen formulas and every counter on the rows of one split."""
    parts = split(table, seed)
    closed = parts.hide_test(table)
    results, branches = exhaust(closed, found, parts, folder, asked)
    evaluator = Values(branches)
    chosen = {
        key: choose(closed, parts, results, evaluator, query)[0] for key, query in QUERIES.items()
    }
    opened = TableJudge(table, parts, with_test=True)
    lines = {
        key: judged(opened, scores) | {"formula": str(entry.formula)}
        for key, (entry, scores) in chosen.items()
    }
    for name in counters.names():
        lines[name] = judged(opened, counters.score(name, table))
    return lines


def judged(table: TableJudge, scores: Any) -> dict[str, Any]:
    test = table.judge(scores, "test")["test"]
    return {
        "train": table.rho(scores, "train"),
        "test": test.rho,
        "rho_given_params": test.rho_given_params,
        "rho_within": test.rho_within,
    }


def summary(name: str, lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Medians, and the range of the test rho."""
    row: dict[str, Any] = {"chosen or counter": name}
    for key in ("train", "test", "rho_given_params", "rho_within"):
        values = [line[key] for line in lines if line[key] is not None]
        row[key] = median(values) if values else None
        if key == "test":
            row["test range"] = [float(np.min(values)), float(np.max(values))]
    return row


if __name__ == "__main__":
    main()
