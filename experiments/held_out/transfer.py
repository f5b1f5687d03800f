"""Formulas chosen on one table, tried on all others: the transfer matrix.

python -m experiments.held_out.transfer --jobs 2

For each table a beam search over products of terms that repeat, on all its rows; the formula that
is chosen, and the best count, which needs no network, are scored on every other table. On the
diagonal stands what the same rule reaches on the test rows of its own table (median over splits).
A formula that reads what a table's networks do not have has no score there.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import numpy as np

from experiments.beyond_counting.languages import read
from experiments.beyond_counting.searches import Data, repeated_logs
from experiments.measured import prints_measured
from experiments.reproduction import markdown
from lpzero import files
from lpzero.arrays import FloatArray, IntArray
from lpzero.cli.options import cache_option, data_option, jobs_option
from lpzero.cli.output import note
from lpzero.discover.objective import order_of
from lpzero.discover.settings import STABLE
from lpzero.judgement import counters
from lpzero.judgement.correlation import agreement, spearman
from lpzero.judgement.ranks import rank_targets
from lpzero.scores.formula_rivals import best_count
from lpzero.scores.products import Found, search
from lpzero.scores.terms import TermLanguage, TermTable, stable_term_tables
from lpzero.scores.values import Values
from lpzero.sketches.store import Store, cache_folder
from primitives.canonical import canonical
from primitives.errors import Rejected
from primitives.parser import parse
from spaces.tables import split

TABLES = (
    "flexibert", "gpt2-wt103", "nano-flexibert", "nano-gpt2", "autoformer-c100-kd",
    "autoformer-flowers-kd", "autoformer-chaoyang-kd", "pit-c100-kd", "pit-flowers-kd",
    "pit-chaoyang-kd",
)  # fmt: skip


@click.command()
@click.option("--table", "names", multiple=True, default=TABLES)
@click.option("--unaries", default=1, show_default=True, help="Operations per chain, 1 or 2.")
@click.option("--splits", default=20, show_default=True, help="For the diagonal.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("runs/transfer"))
@jobs_option
@cache_option
@data_option
@prints_measured
def main(
    names: tuple[str, ...],
    unaries: int,
    splits: int,
    out: Path,
    jobs: int,
    cache: str | None,
    data: str | None,
) -> None:
    """Print the matrix: chosen on, down; tried on, across. A table is done once in --out."""
    out.mkdir(parents=True, exist_ok=True)
    store = Store(cache_folder(cache))

    def table(name: str) -> Data:
        return read.__wrapped__(name, store, jobs, data, unaries)

    for name in names:
        if not (out / f"{name}.json").exists():
            files.write_json(out / f"{name}.json", choose_on(table(name), splits))
            note(f"chosen on {name}")
    chosen = {
        name: json.loads((out / f"{name}.json").read_text(encoding="utf-8")) for name in names
    }
    found = {name: try_on(table(name), chosen) for name in names}
    for kind in ("formula", "count"):
        rows = [
            {"chosen on": one, **{other: found[other][kind][one] for other in names}}
            for one in names
        ]
        if kind == "formula":
            best = {other: found[other]["counter"] for other in names}
            rows.append({"chosen on": "best counter", **best})
        text = markdown(rows, ("chosen on", *names))
        files.write_text(out / f"{kind}.md", text)
        click.echo(f"{kind}\n{text}")


def choose_on(data: Data, splits: int) -> dict[str, Any]:
    """The formula and the count chosen on all rows, and their test medians over splits."""
    both = (Values(data.branches), Values(data.repeated))
    (terms,) = stable_term_tables([both], TermLanguage(), STABLE)
    repeated = repeated_logs(terms, Values(data.repeated))
    every = np.arange(len(data.table))
    best = choose(data, terms, repeated, every)
    count = best_count(data.table, every)
    tested: dict[str, list[float]] = {"formula": [], "count": []}
    for seed in range(splits):
        parts = split(data.table, seed)
        known = np.sort(np.concatenate([parts.train, parts.valid]))
        one, rival = choose(data, terms, repeated, known), best_count(data.table, known)
        test = parts.open_test()
        for kind, scores in (
            ("formula", one.sign * one.factors.logs(terms.logs)),
            ("count", rival.scores),
        ):
            tested[kind].append(spearman(scores[test], data.table.targets[test]))
    return {
        "formula": str(canonical(best.factors.formula(terms, best.sign))),
        "count": str(count.formula),
        "tested": {kind: float(np.median(values)) for kind, values in tested.items()},
    }


def choose(data: Data, terms: TermTable, repeated: FloatArray, rows: IntArray) -> Found:
    """The best product on the rows whose scores repeat; `repeated` (T, A) has other seeds."""
    found = search(terms.logs[:, rows], rank_targets(data.table.targets[rows]))
    scores, again = (
        np.stack([one.factors.logs(of) for one in found]) for of in (terms.logs, repeated)
    )
    complexity = [one.factors.formula(terms).complexity for one in found]
    value = np.array([one.value for one in found])
    return found[order_of(value, agreement(scores, again), complexity, STABLE)[0]]


def try_on(data: Data, chosen: dict[str, Any]) -> dict[str, Any]:
    """Rho of everything chosen on the rows of this table; its own entry is the test median."""
    table = data.table
    evaluator = Values(data.branches)
    depth = {"depth": np.array([float(table.space.depth(arch)) for arch in table.archs])}
    found: dict[str, Any] = {"formula": {}, "count": {}}
    for name, one in chosen.items():
        for kind in found:
            if name == table.name:
                found[kind][name] = round(one["tested"][kind], 3)
            else:
                scores: FloatArray | Rejected = evaluator.score(parse(one[kind]), depth)
                found[kind][name] = (
                    None if isinstance(scores, Rejected)
                    else round(spearman(scores, table.targets), 3)
                )  # fmt: skip
    rhos = {name: spearman(counters.score(name, table), table.targets) for name in counters.names()}
    name = max(rhos, key=lambda counter: rhos[counter])
    found["counter"] = f"{name} {rhos[name]:.3f}"
    return found


if __name__ == "__main__":
    main()
