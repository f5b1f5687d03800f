"""Published columns combined into a formula, on rows that it has not seen.

python -m experiments.columns.run

First tau of each published column of the recurrent cells, over all rows. Then, split by split, the
formula that `lpzero discover` chooses among products and sums of at most four columns, beside the
best single column, chosen on the same rows, and the number of parameters. Every split is kept in
--out as soon as it is there, so that a stopped run continues.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

from experiments.measured import prints_measured
from experiments.reproduction import markdown
from lpzero import files
from lpzero.arrays import FloatArray, IntArray
from lpzero.cli.options import data_option
from lpzero.cli.output import note
from lpzero.discover.discovery import Campaign
from lpzero.discover.report import choose
from lpzero.discover.table_fitness import TableFitness
from lpzero.judgement.correlation import kendall_many, spearman
from lpzero.judgement.ranks import rank_targets
from lpzero.runs.journal import Journal
from lpzero.scores.columns import select
from lpzero.scores.products import search
from primitives.canonical import canonical
from primitives.errors import Rejected
from primitives.formula import Formula
from spaces.tables import ColumnTable, load_any, split


class Arm(NamedTuple):
    """A way to use the columns of a table: its settings, and the number of splits."""

    table: str
    splits: int
    settings: dict[str, Any]
    sizes: str  # the column that counts parameters
    is_plain: bool = False  # a beam alone, over exponents of 1/2, 1 and 2


_CHOSEN_ON_TRAIN = {"archs": 2500, "choose": "train"}
ARMS = {
    "nasbench301": Arm("nasbench301-columns", 20, {}, "params_column"),
    "nasbench301, ranks": Arm("nasbench301-columns", 20, {"columns_as": "ranks"}, "params_column"),
    "recurrent": Arm("rnn-columns", 5, _CHOSEN_ON_TRAIN, "parameters"),
    "nasbench301, plain": Arm("nasbench301-columns", 20, {}, "params_column", True),
    "recurrent, plain": Arm("rnn-columns", 5, _CHOSEN_ON_TRAIN, "parameters", True),
    "recurrent, ranks": Arm(
        "rnn-columns", 5, {**_CHOSEN_ON_TRAIN, "columns_as": "ranks"}, "parameters"
    ),
}
RECURRENT = ("rnn-columns", "rnn-parameters")
SUMMARY = ("arm", "rho", "tau", "column_rho", "column_tau", "params_tau", "wins", "n")


@click.command()
@click.option("--arm", "arms", multiple=True, type=click.Choice(list(ARMS)))
@click.option("--generations", default=30, show_default=True, help="Of each campaign.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("runs/columns"))
@data_option
@prints_measured
def main(arms: tuple[str, ...], generations: int, out: Path, data: str | None) -> None:
    """Print tau of the published columns, and medians over splits."""
    out.mkdir(parents=True, exist_ok=True)
    published = markdown(list(published_columns(data)), ("table", "column", "n", "tau"))
    with Journal(out / "splits.jsonl", lambda record, number: "arm" in record) as journal:
        rows = journal.records()
        journal.go_to(len(journal))
        for name in arms or ARMS:
            for seed in range(ARMS[name].splits):
                if any(is_split(row, name, seed, generations) for row in rows):
                    continue
                found = measure(name, seed, generations, data)
                journal.append([found])
                journal.sync()
                rows.append(found)
                note(f"{name}, split {seed}: {found['rho']:.4f}, {found['formula']}")
    kept = [row for row in rows if row["generations"] == generations]
    text = published + "\n" + markdown(list(summary(kept)), SUMMARY)
    files.write_text(out / "summary.md", text)
    click.echo(text)


def is_split(row: dict[str, Any], arm: str, seed: int, generations: int) -> bool:
    """Whether the row is that of the arm's split."""
    return (row["arm"], row["split"], row["generations"]) == (arm, seed, generations)


def published_columns(data: str | None) -> Iterator[dict[str, Any]]:
    """Tau of every column of the recurrent cells over all rows."""
    for name in RECURRENT:
        table = column_table(name, data)
        for column, values in select(table.columns, list(table.columns), name).items():
            tau = tau_of(values, table.targets)
            yield {"table": name, "column": column, "n": len(table), "tau": tau}


def measure(name: str, seed: int, generations: int, data: str | None) -> dict[str, Any]:
    """What the chosen formula, the best single column and the parameters reach on the test rows."""
    arm = ARMS[name]
    found = Campaign(arm.table, data=data, split_seed=seed, generations=generations, **arm.settings)
    (fitness,) = found.objective.tables_fitness
    chosen_on = fitness.rows if arm.settings.get("choose") == "train" else fitness.train_valid_rows
    if arm.is_plain:
        formula = plain_product(fitness, chosen_on)
    else:
        found.search()
        formula = canonical(choose(found.objective, found.outcome_)[0].formula)
    scores = fitness.values.score(formula)
    assert not isinstance(scores, Rejected), "the winner has a score on every row"
    table = column_table(arm.table, data)
    columns = select(table.columns, list(table.columns), table.name)
    parts = split(table, seed)
    column, values = best_column(columns, table.targets, chosen_on)
    rows = parts.open_test()
    targets = table.targets[rows]
    return {
        "arm": name,
        "split": seed,
        "generations": generations,
        "n": {"chosen_on": len(chosen_on), "test": len(rows)},
        "formula": str(formula),
        "rho": spearman(scores[rows], targets),
        "tau": tau_of(scores[rows], targets),
        "column": column,
        "column_rho": spearman(values[rows], targets),
        "column_tau": tau_of(values[rows], targets),
        "params_tau": tau_of(columns[arm.sizes][rows], targets),
    }


def plain_product(fitness: TableFitness, rows: IntArray) -> Formula:
    """The best product on these rows that a beam finds with the exponents that terms have."""
    targets = rank_targets(fitness.table.targets[rows])
    best = search(fitness.terms.logs[:, rows], targets)[0]
    return best.factors.formula(fitness.terms, best.sign)


def best_column(
    columns: dict[str, FloatArray], targets: FloatArray, rows: IntArray
) -> tuple[str, FloatArray]:
    """The column with the largest |rho| on these rows, with the sign that it has there."""
    rhos = {name: spearman(of[rows], targets[rows]) for name, of in columns.items()}
    name = max(rhos, key=lambda name: abs(rhos[name]))
    return name, np.sign(rhos[name]) * columns[name]


def column_table(name: str, data: str | None) -> ColumnTable:
    """The table of that name, which has columns and no networks."""
    table = load_any(name, data)
    assert isinstance(table, ColumnTable)
    return table


def tau_of(scores: FloatArray, targets: FloatArray) -> float:
    """Kendall's tau-b."""
    return float(kendall_many(scores[np.newaxis], targets).values[0])


def summary(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Medians over the splits of each arm, and the splits in which the formula is ahead."""
    for name in ARMS:
        of_arm = [row for row in rows if row["arm"] == name]
        if of_arm:
            keys = ("rho", "tau", "column_rho", "column_tau", "params_tau")
            medians = {key: float(np.median([row[key] for row in of_arm])) for key in keys}
            wins = sum(row["rho"] > row["column_rho"] for row in of_arm)
            yield {"arm": name, **medians, "wins": f"{wins} of {len(of_arm)}", "n": len(of_arm)}


if __name__ == "__main__":
    main()
