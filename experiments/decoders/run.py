"""What sizes alone say of three tables of decoders: over all rows, and among decoders alike.

python -m experiments.decoders.run

For every counter and the best count: rho over all rows, the pairs of equal depth and width that it
orders as the targets do (a tie is half a pair), and on openlm rho within equal batches. The best
count is found on the train and valid rows of split 0, and its rho on the test rows is printed too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
import numpy as np

from experiments.measured import prints_measured
from experiments.reproduction import markdown
from lpzero.cli.options import data_option
from lpzero.judgement.correlation import pairs_within, within_spearman
from lpzero.judgement.counters import BEST_COUNT
from lpzero.judgement.table import TableJudge
from lpzero.scores.formula_rivals import best_count
from spaces.tables import Table, load, split
from spaces.tables.source import DEPTH_WIDTH

TABLES = ("gpt2-wt103", "transformer-xl", "openlm")
BATCH = "batch"
COLUMNS = ("table", "counter", "rho", "rho test", "pairs ordered", "rho within batches")


def rows(table: Table) -> Iterator[dict[str, Any]]:
    """A row per counter, and one of the best count."""
    drawn = split(table, 0)
    judged = TableJudge(table, drawn, with_test=True)
    count = best_count(table, np.concatenate([drawn.train, drawn.valid]))
    for name, scores in {**judged.counter_scores, BEST_COUNT: count.scores}.items():
        pairs = pairs_within(scores, table.targets, table.groups(DEPTH_WIDTH))
        assert pairs is not None, "each of these tables has pairs"
        row = {
            "table": table.name,
            "counter": f"{name}: `{count.formula}`" if name == BEST_COUNT else name,
            "rho": judged.rho(scores),
            "rho test": judged.rho(scores, "test"),
            "pairs ordered": f"{pairs.share * pairs.n:g} of {pairs.n}",
        }
        if BATCH in table.extra:
            within = within_spearman(scores, table.targets, table.groups(BATCH))
            assert within is not None, "every batch has five rows"
            row["rho within batches"] = within.rho
        yield row


@click.command()
@data_option
@prints_measured
def main(data: str | None) -> None:
    """Print the counters of all three tables."""
    print(markdown([row for name in TABLES for row in rows(load(name, data))], COLUMNS))


if __name__ == "__main__":
    main()
