"""A formula discovered for recurrent cells, beside hidden covariance, counters and the best count.

    python -m experiments.recurrent.discovery --splits 10 --jobs 2

For every table and split: products of terms are searched and chosen on train and valid as in
`experiments.beyond_counting.languages`, and test is opened once. `rnn-wikitext2` is read in the
space of `rnn-ptb` (a vocabulary of 10,000), so that cells of both tables are extracted once.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np

from experiments.beyond_counting.languages import ARMS, measure
from experiments.beyond_counting.searches import Data, terms_of
from experiments.measured import prints_measured
from experiments.reproduction import markdown
from lpzero import files
from lpzero.arrays import FloatArray
from lpzero.cli.options import cache_option, data_option, jobs_option
from lpzero.cli.output import note
from lpzero.judgement.correlation import spearman
from lpzero.parallel import Workers
from lpzero.proxies import Context, Measurements, get
from lpzero.scores.branch_table import branch_table
from lpzero.scores.chains import surviving
from lpzero.sketches.builder import Builder, sketches
from lpzero.sketches.sketch import SketchOptions
from lpzero.sketches.store import Store, cache_folder
from spaces.tables import Table, load, split

SPACES = {"nano-rnn": "nano-rnn", "rnn-ptb": "nlp-rnn", "rnn-wikitext2": "nlp-rnn"}
LANGUAGE = "+ ends"
RIVALS = ("hidden-covariance-1", "hidden-covariance", "parameters", "projections")
PUBLISHED = "Hidden Covariance"  # columns of the table, where it has them
COLUMNS = ("table", "what", "rho", "least", "n")


@click.command()
@click.option(
    "--table", "names", multiple=True, default=tuple(SPACES), type=click.Choice(list(SPACES))
)
@click.option("--splits", default=10, show_default=True)
@click.option("--stable", default=0.99, show_default=True, help="The least stability.")
@click.option(
    "--seeds",
    type=click.IntRange(1, 2),
    default=2,
    show_default=True,
    help="1 extracts once and chooses without regard to stability.",
)
@click.option("--unaries", type=click.IntRange(1, 2), default=2, show_default=True)
@click.option("--rival", "rivals", multiple=True, default=RIVALS, show_default=True)
@click.option("--out", type=Path, default=Path("runs/recurrent"), show_default=True)
@jobs_option
@cache_option
@data_option
@prints_measured
def main(**given: Any) -> None:
    """Print the medians over splits of test rho."""
    folder = cache_folder(given["cache"])
    rows: list[dict[str, Any]] = []
    for name in given["names"]:
        table = load(name, given["data"], SPACES[name])
        workers = Workers(given["jobs"])
        data = read(table, Store(folder), workers, given["seeds"], given["unaries"])
        measurements = Measurements(Context(folder=folder, workers=workers))
        scores = {
            rival: get(rival).score(table.space, table.archs, measurements)
            for rival in given["rivals"]
        }
        scores |= {f"published {n}": v for n, v in table.extra.items() if n.endswith(PUBLISHED)}
        terms = terms_of(data, ARMS[LANGUAGE])
        for seed in range(given["splits"]):
            found = measure(data, terms, (LANGUAGE, "beam"), seed, given["stable"])
            rows += found
            rows += list(_rivals(table, seed, scores))
            note(
                f"{name}, split {seed}: " + ", ".join(f"{r['rule']} {r['rho']:.3f}" for r in found)
            )
    files.write_json(given["out"] / "discovery.json", rows)
    click.echo(markdown(list(summary(rows)), COLUMNS))
    for name in given["names"]:
        chosen = [r["formula"] for r in rows if (r["table"], r["rule"]) == (name, "stable")]
        click.echo(f"{name}, split 0: {chosen[0]}")


def read(table: Table, store: Store, workers: Workers, seeds: int, unaries: int) -> Data:
    """The table with its branch tables of two seeds, which are built if they are missing.

    With one seed it stands for the other too, and every formula repeats.
    """
    made = []
    for seed in range(seeds):
        options = SketchOptions(seed=seed, batch_seed=seed)
        found = sketches(table, Builder(options, store, workers, label=f"sketches, seed {seed}"))
        branches = branch_table(found, surviving(unaries), workers=workers, label="branches")
        made.append((found, branches))
    return Data(table, *made[0], *made[-1])


def _rivals(table: Table, seed: int, scores: dict[str, FloatArray]) -> Iterator[dict[str, Any]]:
    test = split(table, seed).open_test()
    for name, values in scores.items():
        kept = test[np.isfinite(values[test])]
        rho = spearman(values[kept], table.targets[kept])
        yield {"table": table.name, "split": seed, "rule": name, "rho": rho}


def summary(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The median and the least test rho over splits, of each rule and rival."""
    keys = dict.fromkeys((row["table"], row["rule"]) for row in rows)
    for table, rule in keys:
        same = [row["rho"] for row in rows if (row["table"], row["rule"]) == (table, rule)]
        yield _line(table, rule, same)
        if rule == "ensemble":
            counts = [row["count"] for row in rows if (row["table"], row["rule"]) == (table, rule)]
            yield _line(table, "best count", counts)


def _line(table: str, what: str, found: list[float]) -> dict[str, Any]:
    return {
        "table": table,
        "what": what,
        "rho": float(np.median(found)),
        "least": min(found),
        "n": len(found),
    }


if __name__ == "__main__":
    main()
