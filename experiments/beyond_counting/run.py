"""What the default rule of `lpzero discover` chooses on 13 tables and 20 splits, test opened once.

    python -m experiments.beyond_counting.run

For every table and split: the levels of `--choose nested`, cross-validated on train and valid, and
the winner of the level taken (no evolution: it replaces a winner only where the valid rows say so)
and the predictor beside it. How the winner of every level tests is kept too: the summary says what
the simplest level within fewer standard errors of the best would have been worth.
Beside it stand, chosen on the same rows, the best counter, the best count, and the rule `stable`:
the best on train and valid of the products that a beam search of stable terms finds on train and
whose scores repeat at 0.998. A row is kept as soon as it is there: a stopped run continues.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

from experiments.measured import prints_measured
from experiments.reproduction import markdown
from experiments.resumable import Row, resume
from lpzero import files
from lpzero.arrays import FloatArray
from lpzero.cli.options import cache_option, data_option
from lpzero.discover.discovery import Campaign
from lpzero.discover.objective import order_of
from lpzero.discover.prediction import TablePrediction
from lpzero.discover.table_fitness import TableFitness
from lpzero.judgement.correlation import agreement, spearman, spearman_many
from lpzero.judgement.ranks import rank_targets
from lpzero.judgement.table import TableJudge
from lpzero.scores.formula_rivals import best_count
from lpzero.scores.products import product_logs, search
from lpzero.scores.terms import values_of
from spaces.tables import Split, Table, load, split

TABLES = (
    "nano-gpt2", "nano-flexibert", "nano-rnn", "gpt2-wt103", "flexibert", "rnn-ptb",
    "rnn-wikitext2", "autoformer-c100-kd", "autoformer-flowers-kd", "autoformer-chaoyang-kd",
    "pit-c100-kd", "pit-flowers-kd", "pit-chaoyang-kd",
)  # fmt: skip
RIVALS = ("counter", "count", "stable")
TIE = 0.003  # differences below it mean nothing
OTHER_ERRORS = (0, 0.25, 0.5)  # within how many errors of the best; the rule's own are 1


class Choosers(NamedTuple):
    """The table, and as the nested rule and, if asked for, the rule `stable` read it."""

    table: Any
    nested: TableFitness
    stable: TableFitness | None


@click.command()
@click.option("--table", "tables", multiple=True, default=TABLES)
@click.option("--splits", default=20, show_default=True)
@click.option("--weights-seeds", default=1, show_default=True)
@click.option(
    "--no-stable", is_flag=True, help="Leave `stable` out, which needs a second seed of all rows."
)
@click.option(
    "--renamed-apart", is_flag=True, help="Split one network under two names as if it were two."
)
@click.option("--out", type=click.Path(path_type=Path), default=Path("runs/beyond_counting"))
@cache_option
@data_option
@prints_measured
def main(
    tables: tuple[str, ...],
    splits: int,
    weights_seeds: int,
    no_stable: bool,
    renamed_apart: bool,
    out: Path,
    cache: str | None,
    data: str | None,
) -> None:
    """Print the medians over splits, and wins, ties and losses against each rival."""
    given: dict[str, Any] = {"cache": cache, "data": data, "weights_seeds": weights_seeds}
    choosers = lru_cache(maxsize=1)(partial(choosers_of, with_stable=not no_stable, **given))

    def work(key: str) -> list[Row]:
        name, seed = key.split()
        of_table = choosers(name)
        if renamed_apart:
            of_table = of_table._replace(table=RenamedApart.of(of_table.table))
        return [{"table": name, "split": int(seed), **measure(of_table, int(seed))}]

    keys = [f"{name} {seed}" for name in tables for seed in range(splits)]
    kind = f"{weights_seeds}-apart" if renamed_apart else f"{weights_seeds}"
    rows = resume(out / f"rows-{kind}.jsonl", keys, work)
    lines = [
        summary(load(name, data), [row for row in rows if row["table"] == name]) for name in tables
    ]
    files.write_json(out / f"summary-{kind}.json", lines)
    print(markdown(lines, list(lines[0])))


class RenamedApart(Table):
    """The table with a network under two names as two; rows of one name stay together."""

    @classmethod
    def of(cls, table: Table) -> RenamedApart:
        return cls(
            **{field.name: getattr(table, field.name) for field in dataclasses.fields(table)}
        )

    def twins(self) -> Sequence[Any]:
        return self.archs


def choosers_of(name: str, with_stable: bool = False, **given: Any) -> Choosers:
    """The table of that name as the rules read it."""
    campaign = Campaign(name, **given)
    (nested,) = campaign.objective.tables_fitness
    if not with_stable:
        return Choosers(campaign.tables[0], nested, None)
    (stable,) = Campaign(name, choose="stable", **given).objective.tables_fitness
    return Choosers(campaign.tables[0], nested, stable)


def measure(choosers: Choosers, seed: int) -> dict[str, Any]:
    """The level, formula and expectation of one split, and every test rho."""
    table, fitness = choosers.table, choosers.nested
    parts = split(table, seed)
    hidden = parts.hide_test(table)
    rows = np.sort(np.concatenate([parts.train, parts.valid]))
    view = on_split(fitness, hidden, parts, rows)
    choice = view.level_choice
    product = choice.level.best(hidden.targets, rows, 1)[0]
    counter = TableJudge(hidden, parts).best_counter()
    assert counter is not None, "the table has architectures"
    count = best_count(hidden, rows)
    formula, own = choice.level.formula(product), choice.level.scores(product)
    scores = {
        "nested": own,
        "predictor": TablePrediction(view, formula, own).scores,
        "counter": counter[1],
        "count": count.scores,
    }
    levels = {}
    for line, level in zip(choice.lines, view.levels, strict=True):
        [best] = level.best(hidden.targets, rows, 1)
        levels[line.level] = (line.behind, line.behind_error, level.scores(best))
    if choosers.stable is not None:
        scores["stable"] = choose_stable(choosers.stable, hidden.targets, parts.train, rows)
    test = parts.open_test()
    tested = {name: spearman(of[test], table.targets[test]) for name, of in scores.items()}
    by_level = {
        name: (behind, error, spearman(of[test], table.targets[test]))
        for name, (behind, error, of) in levels.items()
    }
    return {
        "level": choice.level.name,
        "expected": choice.line.rho,
        "error": choice.line.error,
        "formula": str(formula),
        "best_counter": counter[0],
        "best_count": str(count.formula),
        "levels": by_level,
        **tested,
    }


def within(row: Row, errors: float) -> float:
    """The test rho of the simplest level within so many standard errors of the best."""
    return next(
        float(rho) for behind, error, rho in row["levels"].values() if behind <= errors * error
    )


def on_split(fitness: TableFitness, hidden: Any, parts: Split, rows: Any) -> TableFitness:
    """The fitness with the targets and rows of a split; levels, which need no targets, are kept."""
    view = copy.copy(fitness)
    view.table, view.parts = hidden, parts
    view.__dict__["train_valid_rows"] = rows
    return view


def choose_stable(fitness: TableFitness, targets: FloatArray, train: Any, rows: Any) -> FloatArray:
    """The scores (A,) of what the rule `stable` takes after a beam search on train."""
    terms = fitness.terms
    products = search(terms.logs[:, train], rank_targets(targets[train]), fitness.beam)
    logs = product_logs([product.factors for product in products], terms.logs)
    second = fitness.second_seed
    assert second is not None, "it is extracted"
    again = np.log(np.abs(values_of(terms.terms, second)))
    repeated = product_logs([product.factors for product in products], again)
    signs = np.array([product.sign for product in products])
    rho = signs * spearman_many(logs[:, rows], rank_targets(targets[rows])).values
    sizes = [len(product.factors.powers) for product in products]
    best = order_of(rho, agreement(logs, repeated), sizes, fitness.settings.stable)[0]
    return np.asarray(signs[best] * logs[best])


def summary(table: Table, rows: Sequence[Row]) -> Row:
    """The table's medians, and wins, ties and losses of both against each rival."""
    line: Row = {"table": table.name, "rows": len(table), "networks": len(set(table.twins()))}
    line["splits"] = len(rows)
    for rule in ("nested", "predictor", *RIVALS):
        if rows and rule in rows[0]:
            line[rule] = round(float(np.median([row[rule] for row in rows])), 3)
    for errors in OTHER_ERRORS:
        if rows and "levels" in rows[0]:
            median = np.median([within(row, errors) for row in rows])
            line[f"{errors:g} errors"] = round(float(median), 3)
    line["expected"] = round(float(np.median([row["expected"] for row in rows])), 3)
    for rule, rival in itertools.product(("nested", "predictor"), RIVALS):
        if rows and {rule, rival} <= rows[0].keys():
            gains = [row[rule] - row[rival] for row in rows]
            wins = sum(gain >= TIE for gain in gains)
            losses = sum(gain <= -TIE for gain in gains)
            line[f"{rule} against {rival}"] = f"{wins}, {len(gains) - wins - losses}, {losses}"
    taken = [row["level"] for row in rows]
    counted = {level: taken.count(level) for level in dict.fromkeys(sorted(taken))}
    line["levels"] = ", ".join(f"{level} {n}" for level, n in counted.items())
    return line


if __name__ == "__main__":
    main()
