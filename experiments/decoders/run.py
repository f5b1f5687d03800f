"""What sizes say of three tables of decoders: over all rows, and among decoders alike.

python -m experiments.decoders.run
python -m experiments.decoders.run --within openlm

For every counter and the best count: rho over all rows, the pairs of equal depth and width that it
orders as the targets do (a tie is half a pair), and on openlm rho within equal batches. The best
count is found on the train and valid rows of split 0, and its rho on the test rows is printed too;
then the median of that over 20 splits.

With --within, what is discovered on the other groups of equal depth and width orders the pairs of
each fold of groups left out, beside the best count of the same rows; networks are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
import numpy as np

from experiments.measured import prints_measured
from experiments.reproduction import markdown
from lpzero.arrays import FloatArray, IntArray, LabelArray
from lpzero.cli.options import cache_option, data_option
from lpzero.discover.discovery import Campaign
from lpzero.discover.levels import choose_level, row_folds
from lpzero.judgement.correlation import pairs_within, spearman, within_spearman
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


def median_of_count(table: Table, splits: int = 20) -> float:
    """The median over splits of the best count's rho on test rows."""
    found = []
    for seed in range(splits):
        parts = split(table, seed)
        count = best_count(table, np.sort(np.concatenate([parts.train, parts.valid])))
        test = parts.open_test()
        found.append(spearman(count.scores[test], table.targets[test]))
    return float(np.median(found))


def within(name: str, cache: str | None, data: str | None) -> Iterator[dict[str, Any]]:
    """A row for the formula and one for the best count: held-out pairs, and their difference."""
    table = load(name, data)
    groups = table.groups(DEPTH_WIDTH)
    campaign = Campaign(name, choose="nested", unaries=1, cache=cache, data=data)
    (fitness,) = campaign.objective.tables_fitness
    every, units = np.arange(len(table)), groups.tolist()
    scores = {"formula": np.zeros(len(table)), BEST_COUNT: np.zeros(len(table))}
    levels = []
    (folds,) = row_folds(every, units, 0)
    for known, left_out in folds:
        choice = choose_level(fitness.levels, table.targets, known, units, 0)
        assert choice is not None, "counters differ"
        product = choice.level.best(table.targets, known, 1)[0]
        scores["formula"][left_out] = choice.level.scores(product)[left_out]
        scores[BEST_COUNT][left_out] = best_count(table, known).scores[left_out]
        levels.append(choice.chosen)
    measured = {name: _by_group(of, table.targets, groups) for name, of in scores.items()}
    pairs, rows = measured[BEST_COUNT][:, 1], measured[BEST_COUNT][:, 3]
    drawn = np.random.default_rng(0).integers(len(pairs), size=(2000, len(pairs)))
    for kind, of in measured.items():
        row = {
            "": kind,
            "pairs ordered": f"{of[:, 0].sum():g} of {pairs.sum():g}",
            "rho": f"{of[:, 2].sum() / rows.sum():.3f}",
        }
        if kind == "formula":
            ahead = of - measured[BEST_COUNT]
            row["levels"] = ", ".join(levels)
            row["difference in the share"] = _interval(ahead[:, 0], pairs, drawn)
            row["difference in rho"] = _interval(ahead[:, 2], rows, drawn)
        yield row


def _by_group(scores: FloatArray, targets: FloatArray, groups: LabelArray) -> FloatArray:
    """Of each group with a pair (G, 4): pairs ordered as the targets are, pairs, n rho, and n rows.

    Groups of two count, unlike in the judgement's rho within groups: most have two to four rows.
    """
    measured = []
    for label in np.unique(groups):
        rows = groups == label
        pairs = pairs_within(scores[rows], targets[rows], groups[rows])
        if pairs is not None:
            n, rho = rows.sum(), spearman(scores[rows], targets[rows])
            measured.append((pairs.share * pairs.n, pairs.n, n * rho, n))
    return np.array(measured)


def _interval(ahead: FloatArray, weights: FloatArray, drawn: IntArray) -> str:
    """The mean with its 95% interval over resampled groups."""
    means = ahead[drawn].sum(axis=1) / weights[drawn].sum(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return f"{ahead.sum() / weights.sum():+.3f} ({low:+.3f} to {high:+.3f})"


@click.command()
@click.option(
    "--within", "of_groups", help="A table: print what orders pairs of equal depth and width."
)
@cache_option
@data_option
@prints_measured
def main(of_groups: str | None, cache: str | None, data: str | None) -> None:
    """Print the counters of all three tables, or what orders decoders of equal depth and width."""
    if of_groups is not None:
        measures = ("pairs ordered", "difference in the share", "rho", "difference in rho")
        columns = ("", *measures, "levels")
        print(markdown(list(within(of_groups, cache, data)), columns))
        return
    print(markdown([row for name in TABLES for row in rows(load(name, data))], COLUMNS))
    for name in TABLES:
        print(f"best count on {name}, median of 20 splits: {median_of_count(load(name, data)):.3f}")


if __name__ == "__main__":
    main()
