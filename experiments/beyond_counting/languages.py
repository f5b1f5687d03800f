"""Languages and searches of formulas on unseen rows, beside the best count: medians over splits.

python -m experiments.beyond_counting.languages --jobs 2

For every table, language, search and split: search on train and valid, choose the best whose scores
repeat with other seeds, open test once. Every row is kept in --out as soon as it is there, so that
a stopped run continues. Missing sketches of two seeds are extracted first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import click
import numpy as np

from experiments.beyond_counting.picture import draw
from experiments.beyond_counting.searches import Arm, Data, Pool, Terms, beam, evolve, terms_of
from experiments.measured import prints_measured
from experiments.reproduction import markdown
from lpzero import files
from lpzero.arrays import FloatArray
from lpzero.cli.options import cache_option, data_option, jobs_option
from lpzero.cli.output import note
from lpzero.discover.objective import order_of, rank_mean
from lpzero.discover.shared_levels import MEMBERS
from lpzero.judgement.correlation import agreement, spearman, spearman_many, within_spearman
from lpzero.judgement.ranks import rank_targets
from lpzero.judgement.table import TableJudge
from lpzero.parallel import Workers
from lpzero.proxies import Context
from lpzero.proxies.ranking import ProxyColumns
from lpzero.runs.journal import Journal
from lpzero.scores.branch_table import branch_table
from lpzero.scores.chains import surviving
from lpzero.scores.formula_rivals import best_count
from lpzero.scores.terms import TermLanguage
from lpzero.sketches.builder import Builder, sketches
from lpzero.sketches.sketch import SketchOptions
from lpzero.sketches.store import Store, cache_folder
from spaces.tables import Split, load, split

PAPER = ("sum", "mean")
WHOLE = "+ ends"
ROWS = "rows.jsonl"
# Proxies whose scores are terms of the last language.
COLUMNS_FROM = ("sept", "ntsr", "snip", "ntkt", "activation-distance", "attention-confidence")

ARMS = {
    "one term": Arm(TermLanguage(reductions=PAPER, sizes=False, ends=False), 1),
    "products": Arm(TermLanguage(reductions=PAPER, sizes=False, ends=False), 4),
    "+ positions": Arm(TermLanguage(sizes=False, ends=False), 4),
    "+ sizes": Arm(TermLanguage(ends=False), 4),
    WHOLE: Arm(TermLanguage(), 4),
    "+ columns": Arm(TermLanguage(), 4, COLUMNS_FROM),
}
SEARCHES = ("beam", "random", "evolution", "beam, evolution")
SETTINGS = ("table", "language", "search", "unaries", "stable")
KEYS = ("table", "language", "search", "rule")
MEDIANS = ("fit", "rho", "rho_within", "count", "count_within", "counter", "stability")
COLUMNS = (*KEYS, *MEDIANS, "ahead_of_count", "ahead_of_counter", "n")


@click.command()
@click.option("--table", "names", multiple=True, default=("flexibert", "gpt2-wt103"))
@click.option("--language", "arms", multiple=True, type=click.Choice(list(ARMS)))
@click.option(
    "--search",
    "searches",
    multiple=True,
    type=click.Choice(SEARCHES),
    default=("beam",),
    help="random, evolution and both together are for the language + ends only.",
)
@click.option("--unaries", default=2, show_default=True, help="Operations per chain, 1 or 2.")
@click.option("--splits", default=20, show_default=True)
@click.option(
    "--stable", default=0.998, show_default=True, help="The least stability of a product."
)
@click.option("--out", type=click.Path(path_type=Path), default=Path("runs/languages"))
@jobs_option
@cache_option
@data_option
@prints_measured
def main(
    names: tuple[str, ...],
    arms: tuple[str, ...],
    searches: tuple[str, ...],
    unaries: int,
    splits: int,
    stable: float,
    out: Path,
    jobs: int,
    cache: str | None,
    data: str | None,
) -> None:
    """Print the medians over splits for every table, language, search and rule of choosing."""
    out.mkdir(parents=True, exist_ok=True)
    store = Store(cache_folder(cache))
    proxy_scores = ProxyColumns(Context(folder=store.folder, workers=Workers(jobs)))
    with Journal(out / ROWS, lambda record, number: "table" in record, ROWS) as journal:
        rows = journal.records()
        journal.go_to(len(journal))
        for name in names:
            for arm, how in _asked(arms, searches):
                key = (name, arm, how, unaries, stable)
                done = {row["split"] for row in rows if tuple(row.get(k) for k in SETTINGS) == key}
                for seed in sorted(set(range(splits)) - done):
                    branches = read(name, store, jobs, data, unaries)
                    terms = _terms(branches, arm, proxy_scores)
                    found = measure(branches, terms, (arm, how), seed, stable)
                    found = [{**row, "unaries": unaries} for row in found]
                    journal.append(found)
                    journal.sync()
                    rows += found
                    note(f"{name}, {arm}, {how}, split {seed}: " + ", ".join(
                        f"{row['rule']} {row['rho']:.4f}" for row in found))  # fmt: skip
    asked = {(name, *pair) for name in names for pair in _asked(arms, searches)}
    kept = [
        row
        for row in rows
        if (row["table"], row["language"], row.get("search")) in asked
        and row["split"] < splits
        and (row.get("unaries"), row["stable"]) == (unaries, stable)
    ]
    table = markdown(list(summary(kept)), COLUMNS)
    files.write_text(out / "summary.md", table)
    draw(kept, out / "splits.svg")
    click.echo(table)


def _asked(arms: tuple[str, ...], searches: tuple[str, ...]) -> list[tuple[str, str]]:
    """The pairs of language and search."""
    pairs = [(arm, how) for arm in arms or ARMS for how in searches]
    return [(arm, how) for arm, how in pairs if how == "beam" or arm == WHOLE]


@lru_cache(maxsize=1)
def read(name: str, store: Store, jobs: int, data: str | None, unaries: int = 2) -> Data:
    """The table with its branch tables, which are built if they are missing."""
    table, workers = load(name, data), Workers(jobs)
    made: list[Any] = []
    for seed in (0, 1):
        options = SketchOptions(seed=seed, batch_seed=seed)
        found = sketches(table, Builder(options, store, workers, label=f"sketches of {name}"))
        made += [found, branch_table(found, surviving(unaries), workers=workers, label="branches")]
    return Data(table, *made)


_TERMS: dict[tuple[str, str], dict[bool, Terms]] = {}


def _terms(data: Data, arm: str, scores: ProxyColumns) -> dict[bool, Terms]:
    """The language's terms on the table; those of the last one are kept."""
    key = data.table.name, arm
    if key not in _TERMS:
        _TERMS.clear()
        proxies = ARMS[arm].proxies
        first, second = (
            scores(data.table, proxies, SketchOptions(seed=seed, batch_seed=seed))
            for seed in (0, 1)
        )
        _TERMS[key] = terms_of(data, ARMS[arm], (first, second))
    return _TERMS[key]


def measure(
    data: Data, terms: Mapping[bool, Terms], what: tuple[str, str], seed: int, stable: float
) -> list[dict[str, Any]]:
    """A row per rule of choosing, on the test rows of one split; `what` is language and search."""
    table, parts = data.table, split(data.table, seed)
    known = np.sort(np.concatenate([parts.train, parts.valid]))
    arm, how = what
    if how == "beam":
        pools = {key: beam(data, of, ARMS[arm].factors, known) for key, of in terms.items()}
    else:
        pools = dict.fromkeys((False, True), evolve(data, terms[True], how, known, seed))
    count = best_count(table, known)
    # The best counter, too, is chosen on train and valid.
    hidden, chosen_on = parts.hide_test(table), Split(seed, known, parts.valid, np.arange(0))
    best_counter = TableJudge(hidden, chosen_on).best_counter()
    assert best_counter is not None, "the table has architectures"
    counter, counter_scores = best_counter
    test = parts.open_test()
    groups = table.groups("depth-width")

    def rho(values: FloatArray) -> float:
        return spearman(values[test], table.targets[test])

    def within(values: FloatArray) -> float | None:
        inside = within_spearman(values[test], table.targets[test], groups[test])
        return None if inside is None else inside.rho

    beside = {
        "table": table.name, "language": arm, "search": how, "split": seed, "stable": stable,
        "count": rho(count.scores), "count_within": within(count.scores),
        "count_formula": str(count.formula), "counter": rho(counter_scores),
        "counter_name": counter,
    }  # fmt: skip
    return [
        {
            **beside,
            "rule": rule,
            "fit": spearman(values[known], table.targets[known]),
            "rho": rho(values),
            "rho_within": within(values),
            **facts,
        }
        for rule, values, facts in _chosen(pools, data, parts, stable)
    ]


def _chosen(
    pools: Mapping[bool, Pool], data: Data, parts: Split, stable: float
) -> Iterator[tuple[str, FloatArray, dict[str, Any]]]:
    """Every rule of choosing with the scores (A,) of what it chooses, and what that is."""
    known = np.sort(np.concatenate([parts.train, parts.valid]))
    for rule, on, is_stable in (
        ("train", parts.train, False),
        ("train and valid", known, False),
        ("stable", known, True),
    ):
        pool = pools[is_stable]
        ranks = rank_targets(data.table.targets[on])
        rho = spearman_many(pool.scores[:, on], ranks).values
        signs = np.where(rho < 0, -1, 1)
        steady = agreement(pool.scores, pool.repeated) if is_stable else None
        order = order_of(np.abs(rho), steady, pool.complexity, stable)
        best = order[0]
        formula = pool.formulas[best]
        formula = formula.with_sign(formula.sign * int(signs[best]))
        stability = None if steady is None else float(steady[best])
        facts = {"formula": str(formula), "stability": stability}
        yield rule, signs[best] * pool.scores[best], facts
    members = order[:MEMBERS]
    told = {"formula": f"{len(members)} members", "stability": None}
    yield "ensemble", rank_mean(signs[members, np.newaxis] * pool.scores[members]), told


def summary(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Medians over splits, and how often the rho is above the best count's and counter's."""
    keys = dict.fromkeys(tuple(row[key] for key in KEYS) for row in rows)
    for key in keys:
        same = [row for row in rows if tuple(row[k] for k in KEYS) == key]
        medians = {name: _median([row[name] for row in same]) for name in MEDIANS}
        ahead = {
            f"ahead_of_{rival}": f"{sum(row['rho'] > row[rival] for row in same)}/{len(same)}"
            for rival in ("count", "counter")
        }
        yield {**dict(zip(KEYS, key, strict=True)), **medians, **ahead, "n": len(same)}


def _median(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.median(known)) if known else None


if __name__ == "__main__":
    main()
