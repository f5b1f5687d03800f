"""The permutation floor of the beam search: what it fits to permuted targets, and how that tests.

python -m experiments.beyond_counting.floor --jobs 2

The search is that of the experiment, on train and valid of one split, in the language of `+ ends`.
"""

from __future__ import annotations

from functools import partial

import click
import numpy as np

from experiments.measured import prints_measured
from experiments.reproduction import markdown
from lpzero.cli.options import cache_option, data_option, jobs_option
from lpzero.parallel import Workers
from lpzero.scores.branch_table import branch_table
from lpzero.scores.chains import surviving
from lpzero.scores.floor import PERMUTATIONS, ProductFloor, permutation_floor
from lpzero.scores.products import search
from lpzero.scores.terms import term_table
from lpzero.scores.values import Values
from lpzero.sketches.builder import Builder, sketches
from lpzero.sketches.store import Store, cache_folder
from spaces.tables import load, split

COLUMNS = ("table", "permutations", "fit", "fit_ci", "test", "test_ci")


@click.command()
@click.option("--table", "names", multiple=True, default=("flexibert", "gpt2-wt103"))
@click.option("--permutations", default=PERMUTATIONS, show_default=True)
@click.option("--split-seed", default=0, show_default=True)
@jobs_option
@cache_option
@data_option
@prints_measured
def main(
    names: tuple[str, ...],
    permutations: int,
    split_seed: int,
    jobs: int,
    cache: str | None,
    data: str | None,
) -> None:
    """Print the floor of every table."""
    store, workers = Store(cache_folder(cache)), Workers(jobs)
    rows = []
    for name in names:
        table = load(name, data)
        found = sketches(table, Builder(store=store, workers=workers, label=f"sketches of {name}"))
        logs = term_table(Values(branch_table(found, surviving(2), workers=workers))).logs
        parts = split(table, split_seed)
        known = np.sort(np.concatenate([parts.train, parts.valid]))
        floor = ProductFloor(partial(search, logs[:, known]), logs, known, known, parts.open_test())
        fitted = permutation_floor(floor, table.targets, permutations, workers=workers, label=name)
        rows.append({"table": name, **fitted.to_json()})
    click.echo(markdown(rows, COLUMNS))


if __name__ == "__main__":
    main()
