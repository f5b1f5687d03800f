"""The engine's own proxies, for encoders, decoders and both: how they are chosen.

python -m experiments.engine_proxies.choose --splits 20 --jobs 2

A beam search over products of terms that repeat, on all rows of flexibert (encoder), of gpt2-wt103
(decoder), or of both together by the least regret (universal); then the best among products whose
scores repeat with other seeds, and the twenty best of these as an ensemble. With --splits N the
same rule chooses on train and valid of N splits, and test is opened once for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

from experiments.beyond_counting.languages import read
from experiments.beyond_counting.searches import Data, repeated_logs
from experiments.measured import prints_measured
from lpzero import files
from lpzero.arrays import FloatArray, IntArray
from lpzero.cli.options import cache_option, data_option, jobs_option
from lpzero.cli.output import note
from lpzero.discover.objective import MEMBERS, order_of
from lpzero.discover.settings import STABLE as TERMS_STABLE
from lpzero.judgement.correlation import agreement, spearman, within_spearman
from lpzero.judgement.measures import Across
from lpzero.judgement.ranks import rank_many, rank_targets
from lpzero.scores.formula_rivals import best_count, count_terms
from lpzero.scores.products import Found, Searched, search, search_tables
from lpzero.scores.terms import TermLanguage, TermTable, stable_term_tables
from lpzero.scores.values import Values
from lpzero.sketches.store import Store, cache_folder
from spaces.tables import Table, split

TABLES = {
    "engine-encoder": ("flexibert",),
    "engine-decoder": ("gpt2-wt103",),
    "engine-universal": ("flexibert", "gpt2-wt103"),
}
STABLE = {"flexibert": 0.998, "gpt2-wt103": 0.999}  # of products


class Side(NamedTuple):
    """A table with its terms, their logarithms (T, A) with other seeds, and how far products of
    them must repeat."""

    data: Data
    terms: TermTable
    repeated: FloatArray
    stable: float = TERMS_STABLE

    def searched(self, rows: IntArray) -> Searched:
        targets = rank_targets(self.data.table.targets[rows])
        return Searched(self.terms.logs[:, rows], targets)


@click.command()
@click.option("--splits", default=0, show_default=True, help="Try the rule on so many splits.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("runs/engine_proxies"))
@jobs_option
@cache_option
@data_option
@prints_measured
def main(splits: int, out: Path, jobs: int, cache: str | None, data: str | None) -> None:
    """Write the chosen formulas and print, with --splits, their held-out medians."""
    store = Store(cache_folder(cache))
    tables = {name: read.__wrapped__(name, store, jobs, data) for name in STABLE}
    found: dict[str, Any] = {}
    for name, names in TABLES.items():
        sides = prepare([tables[table] for table in names])
        every = [np.arange(len(side.data.table)) for side in sides]
        chosen = choose(sides, every)
        texts = [str(one.factors.formula(sides[0].terms, one.sign)) for one in chosen]
        found[name] = {"tables": names, "formula": texts[0], "members": texts[:MEMBERS]}
        note(f"{name}: {texts[0]}")
        if splits:
            found[name]["held_out"] = held_out(sides, splits)
            for table, medians in found[name]["held_out"].items():
                note(f"  {table}: " + ", ".join(f"{k} {v}" for k, v in medians.items()))
    out.mkdir(parents=True, exist_ok=True)
    files.write_json(out / "chosen.json", found)
    click.echo(out / "chosen.json")


def prepare(tables: Sequence[Data]) -> list[Side]:
    """The tables with the terms that all of them have and that repeat on each."""
    both = [(Values(data.branches), Values(data.repeated)) for data in tables]
    found = stable_term_tables(both, TermLanguage(), TERMS_STABLE)
    return [
        Side(data, terms, repeated_logs(terms, Values(data.repeated)), STABLE[data.table.name])
        for data, terms in zip(tables, found, strict=True)
    ]


def choose(sides: Sequence[Side], rows: Sequence[IntArray]) -> list[Found]:
    """The products that repeat on every table, best first by rho or by the least regret."""
    searched = [side.searched(known) for side, known in zip(sides, rows, strict=True)]
    across = Across()
    if len(sides) > 1:
        across = Across("regret", [search(*table)[0].value for table in searched])
    found = list(search_tables(searched, across))
    above = []
    for side in sides:
        scores, again = (
            np.stack([one.factors.logs(logs) for one in found])
            for logs in (side.terms.logs, side.repeated)
        )
        above.append(agreement(scores, again) - side.stable)
    complexity = [one.factors.formula(sides[0].terms).complexity for one in found]
    value = np.array([one.value for one in found])
    return [found[i] for i in order_of(value, np.min(above, axis=0), complexity, 0.0)]


def held_out(sides: Sequence[Side], splits: int) -> dict[str, Any]:
    """Medians over splits on test rows: the formula, the ensemble, the best count, stability."""
    rows: dict[str, list[dict[str, float]]] = {side.data.table.name: [] for side in sides}
    for seed in range(splits):
        parts = [split(side.data.table, seed) for side in sides]
        known = [np.sort(np.concatenate([part.train, part.valid])) for part in parts]
        chosen = choose(sides, known)[:MEMBERS]
        counts = joint_count([side.data.table for side in sides], known)
        for side, part, on, joint in zip(sides, parts, known, counts, strict=True):
            table, test = side.data.table, part.open_test()
            scores = np.stack([one.sign * one.factors.logs(side.terms.logs) for one in chosen])
            again = chosen[0].sign * chosen[0].factors.logs(side.repeated)
            found = {
                "formula": scores[0],
                "ensemble": rank_many(scores).mean(axis=0),
                "count": best_count(table, on).scores,
                "joint count": joint,
            }
            row = {"stability": float(agreement(scores[:1], again[np.newaxis])[0])}
            for name, values in found.items():
                row[name] = spearman(values[test], table.targets[test])
                groups = table.groups("depth-width")[test]
                within = within_spearman(values[test], table.targets[test], groups)
                row[f"{name} within"] = np.nan if within is None else within.rho
            rows[table.name].append(row)
    return {name: _medians(of_table) for name, of_table in rows.items()}


def joint_count(tables: Sequence[Table], rows: Sequence[IntArray]) -> list[FloatArray]:
    """The scores on each table of one product of sizes for all of them, by the least regret."""
    counts = [count_terms(table) for table in tables]
    shared = [term for term in counts[0].terms if all(term in of.terms for of in counts)]
    logs = [np.stack([of.logs[of.terms.index(term)] for term in shared]) for of in counts]
    searched = [
        Searched(of[:, known], rank_targets(table.targets[known]))
        for of, known, table in zip(logs, rows, tables, strict=True)
    ]
    across = Across("regret", [search(*table)[0].value for table in searched])
    best = next(search_tables(searched, across))
    return [best.sign * best.factors.logs(of) for of in logs]


def _medians(rows: list[dict[str, float]]) -> dict[str, Any]:
    medians: dict[str, Any] = {}
    for key in rows[0]:
        values = [row[key] for row in rows if np.isfinite(row[key])]
        medians[key] = round(float(np.median(values)), 4) if values else None
    for name, rival in product(("formula", "ensemble"), ("count", "joint count")):
        wins = sum(row[name] > row[rival] for row in rows)
        difference = np.median([row[name] - row[rival] for row in rows])
        medians[f"{name} against {rival}"] = f"{difference:+.4f}, {wins} of {len(rows)}"
    return medians


if __name__ == "__main__":
    main()
