"""Languages of formulas on unseen rows, beside the best count: medians over splits.

python -m experiments.beyond_counting.run --jobs 2

For every table, language and split: search products of terms on train and valid, choose the best
whose scores repeat with other seeds, open test once. Every row is kept in --out as soon as it is
there, so that a stopped run continues. Missing sketches of two seeds are extracted first.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

from experiments.reproduction import markdown
from lpzero import files
from lpzero.arrays import FloatArray, IntArray
from lpzero.cli.output import cache_option, data_option, jobs_option, note
from lpzero.discover.choice import MEMBERS, choose, ensemble_scores
from lpzero.judgement.correlation import spearman, within_spearman
from lpzero.judgement.ranks import rank_targets
from lpzero.parallel import Workers
from lpzero.runs.journal import Journal
from lpzero.scores.best_count import best_count
from lpzero.scores.branch_table import BranchTable, branch_table
from lpzero.scores.chains import surviving
from lpzero.scores.products import Beam, Factors, search
from lpzero.scores.stable_terms import Repeated, stable_term_tables
from lpzero.scores.terms import TermLanguage, TermSource, TermTable, term_table, values_of
from lpzero.sketches.builder import Builder, sketches
from lpzero.sketches.sketch import SketchOptions
from lpzero.sketches.store import Store, default_folder
from spaces.tables import Table, load, split

PAPER = ("sum", "mean")


class Arm(NamedTuple):
    """A language, and how many terms a product of it may have."""

    language: TermLanguage
    factors: int


ARMS = {
    "one term": Arm(TermLanguage(reductions=PAPER, sizes=False, ends=False), 1),
    "products": Arm(TermLanguage(reductions=PAPER, sizes=False, ends=False), 4),
    "+ positions": Arm(TermLanguage(sizes=False, ends=False), 4),
    "+ sizes": Arm(TermLanguage(ends=False), 4),
    "+ ends": Arm(TermLanguage(), 4),
}
RULES = ("train", "train and valid", "stable", "ensemble")
POOL = 400  # products of a search that are chosen from
COLUMNS = ("table", "language", "rule", "rho", "rho_within", "count", "count_within", "wins", "n")


class Data(NamedTuple):
    """A table with the branch tables of two seeds."""

    table: Table
    branches: BranchTable
    repeated: BranchTable


@click.command()
@click.option("--table", "names", multiple=True, default=("flexibert", "gpt2-wt103"))
@click.option("--language", "arms", multiple=True, type=click.Choice(list(ARMS)))
@click.option("--splits", default=20, show_default=True)
@click.option("--stable", default=0.998, show_default=True, help="The least stability.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("runs/beyond_counting"))
@jobs_option
@cache_option
@data_option
def main(
    names: tuple[str, ...],
    arms: tuple[str, ...],
    splits: int,
    stable: float,
    out: Path,
    jobs: int,
    cache: str | None,
    data: str | None,
) -> None:
    """Print the medians over splits for every table, language and rule of choosing."""
    out.mkdir(parents=True, exist_ok=True)
    store = Store(Path(cache) if cache else default_folder())
    with Journal(out / "rows.jsonl", lambda record, number: "table" in record) as journal:
        rows = journal.records()
        journal.go_to(len(journal))
        for name in names:
            for arm in arms or ARMS:
                done = {
                    row["split"]
                    for row in rows
                    if (row["table"], row["language"], row["stable"]) == (name, arm, stable)
                }
                for seed in sorted(set(range(splits)) - done):
                    found = measure(read(name, store, jobs, data), arm, seed, stable)
                    journal.append(found)
                    journal.sync()
                    rows += found
                    note(f"{name}, {arm}, split {seed}: " + ", ".join(
                        f"{row['rule']} {row['rho']:.4f}" for row in found))  # fmt: skip
    kept = [
        r for r in rows if r["table"] in names and r["split"] < splits and r["stable"] == stable
    ]
    table = markdown(list(summary(kept)), COLUMNS)
    files.write_text(out / "summary.md", table)
    click.echo(table)


@lru_cache(maxsize=1)
def read(name: str, store: Store, jobs: int, data: str | None) -> Data:
    """The table with its branch tables, which are built if they are missing."""
    table, workers = load(name, data), Workers(jobs)
    made = []
    for seed in (0, 1):
        options = SketchOptions(seed=seed, batch_seed=seed)
        found = sketches(table, Builder(options, store, workers, label=f"sketches of {name}"))
        made.append(branch_table(found, surviving(2), workers=workers, label="branches"))
    return Data(table, *made)


_TERMS: dict[tuple[str, str, float], dict[bool, Pool]] = {}


class Pool(NamedTuple):
    """The terms that a rule searches, and their logarithms (T, A) with the other seeds."""

    terms: TermTable
    repeated: FloatArray


def pools_of(data: Data, arm: str, stable: float) -> dict[bool, Pool]:
    """All terms of the language, and (True) those whose values repeat."""
    key = data.table.name, arm, stable
    if key not in _TERMS:
        _TERMS.clear()
        language = ARMS[arm].language
        both = Repeated(TermSource(data.branches), TermSource(data.repeated))
        (steady,) = stable_term_tables([both], language, stable)
        _TERMS[key] = {
            is_stable: Pool(terms, repeated_logs(terms, data.repeated))
            for is_stable, terms in ((False, term_table(data.branches, language)), (True, steady))
        }
    return _TERMS[key]


def repeated_logs(terms: TermTable, repeated: BranchTable) -> FloatArray:
    """The logarithms (T, A) of the same terms from another branch table; NaN where undefined."""
    values = np.abs(values_of(terms.terms, TermSource(repeated)))
    return np.log(np.where(values > 0, values, np.nan))


class Found(NamedTuple):
    """The products of a search with their scores (K, A), those of other seeds, and their sizes."""

    products: list[Factors]
    scores: FloatArray
    others: FloatArray
    complexity: list[int]


def search_pool(pool: Pool, targets: FloatArray, rows: IntArray, factors: int) -> Found:
    """The best products of the pool on the rows."""
    found = search(pool.terms.logs[:, rows], rank_targets(targets[rows]), Beam(factors=factors))
    products = [one.factors for one in found[:POOL]]
    scores, others = (
        np.stack([one.logs(logs) for one in products]) for logs in (pool.terms.logs, pool.repeated)
    )
    others = np.where(np.isfinite(others).all(axis=1, keepdims=True), others, 0.0)
    return Found(products, scores, others, [one.formula(pool.terms).complexity for one in products])


def measure(data: Data, arm: str, seed: int, stable: float) -> list[dict[str, Any]]:
    """A row per rule of choosing, on the test rows of one split."""
    table = data.table
    parts = split(table, seed)
    known = np.sort(np.concatenate([parts.train, parts.valid]))
    pools = pools_of(data, arm, stable)
    searched = {
        is_stable: search_pool(pool, table.targets, known, ARMS[arm].factors)
        for is_stable, pool in pools.items()
    }
    count = best_count(table, known)
    test = parts.open_test()
    groups = table.groups("depth-width")

    def within(values: FloatArray) -> float | None:
        inside = within_spearman(values[test], table.targets[test], groups[test])
        return None if inside is None else inside.rho

    def row(rule: str, values: FloatArray, text: str, stability: float | None) -> dict[str, Any]:
        return {
            "table": table.name, "language": arm, "split": seed, "stable": stable, "rule": rule,
            "rho": spearman(values[test], table.targets[test]), "rho_within": within(values),
            "count": spearman(count.scores[test], table.targets[test]),
            "count_within": within(count.scores), "formula": text, "stability": stability,
            "count_formula": str(count.formula),
        }  # fmt: skip

    rows = []
    for rule, on, is_stable in (
        ("train", parts.train, False),
        ("train and valid", known, False),
        ("stable", known, True),
    ):
        found = searched[is_stable]
        repeats = found.others if is_stable else None
        choice = choose(found.scores, repeats, table.targets, on, found.complexity, stable)
        best = choice.best
        formula = found.products[best].formula(pools[is_stable].terms, int(choice.signs[best]))
        steady = float(choice.stability[best]) if is_stable else None
        rows.append(row(rule, choice.signs[best] * found.scores[best], str(formula), steady))
    scores = ensemble_scores(searched[True].scores, choice)
    rows.append(row("ensemble", scores, f"{MEMBERS} members", None))
    return rows


def summary(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Medians over splits, and how often the rho is above the best count's."""
    keys = dict.fromkeys((row["table"], row["language"], row["rule"]) for row in rows)
    for table, language, rule in keys:
        same = [
            r for r in rows if (r["table"], r["language"], r["rule"]) == (table, language, rule)
        ]
        medians = {key: _median([row[key] for row in same]) for key in COLUMNS[3:7]}
        wins = sum(row["rho"] > row["count"] for row in same)
        yield {"table": table, "language": language, "rule": rule, **medians,
               "wins": f"{wins}/{len(same)}", "n": len(same)}  # fmt: skip


def _median(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.median(known)) if known else None


if __name__ == "__main__":
    main()
