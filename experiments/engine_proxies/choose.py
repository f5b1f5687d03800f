"""Candidates for proxies of the engine's own, for encoders, decoders and both: not frozen yet.

python -m experiments.engine_proxies.choose --jobs 2

Encoder and decoder: a beam search over products of terms on all rows of flexibert or gpt2-wt103,
then the best by rho among products whose scores repeat with other seeds. Universal: the same terms
on both tables, the best by the least regret, which is how far a product stays below each table's
own best. With --splits N the rule is tried on train and valid of N splits, and tested on the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np

from experiments.beyond_counting.run import Data, read, repeated_logs
from lpzero import files
from lpzero.arrays import FloatArray, IntArray
from lpzero.cli.output import cache_option, data_option, jobs_option, note
from lpzero.discover.choice import MEMBERS, order_of
from lpzero.judgement.correlation import spearman, spearman_many
from lpzero.judgement.ranks import rank_many, rank_targets
from lpzero.judgement.stability import agreement
from lpzero.scores.best_count import best_count
from lpzero.scores.products import Beam, Factors, search
from lpzero.scores.terms import TermTable, term_table
from lpzero.sketches.store import Store, default_folder
from spaces.tables import split

STABLE = {"flexibert": 0.998, "gpt2-wt103": 0.999}
POOL = 400


class Side(NamedTuple):
    """A table with the logarithms (T, A) of the terms, and those with other seeds."""

    data: Data
    logs: FloatArray
    repeated: FloatArray

    def rho(self, scores: FloatArray, rows: IntArray) -> FloatArray:
        targets = self.data.table.targets[rows]
        return spearman_many(scores[:, rows], rank_targets(targets)).values


class Chosen(NamedTuple):
    """The terms, and the products that may be chosen, best first, with their signs."""

    terms: TermTable
    products: list[Factors]
    signs: FloatArray


@click.command()
@click.option("--splits", default=0, show_default=True, help="Try the rule on so many splits.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("runs/engine_proxies"))
@jobs_option
@cache_option
@data_option
def main(splits: int, out: Path, jobs: int, cache: str | None, data: str | None) -> None:
    """Print the chosen formulas and, with --splits, their held-out medians."""
    store = Store(Path(cache) if cache else default_folder())
    encoder, decoder = (read.__wrapped__(name, store, jobs, data) for name in STABLE)
    made = {
        "engine-encoder": [encoder],
        "engine-decoder": [decoder],
        "engine-universal": [encoder, decoder],
    }
    found = {}
    for name, sides in made.items():
        terms, prepared = prepare(sides)
        every = [np.arange(len(side.data.table)) for side in prepared]
        chosen = choose(terms, prepared, every)
        texts = [
            str(one.formula(terms, int(sign)))
            for one, sign in zip(chosen.products, chosen.signs, strict=True)
        ]
        found[name] = {"formula": texts[0], "members": texts[:MEMBERS]}
        note(f"{name}: {texts[0]}")
        if splits:
            found[name]["held_out"] = held_out(terms, prepared, splits)
            note(f"  {found[name]['held_out']}")
    out.mkdir(parents=True, exist_ok=True)
    files.write_json(out / "chosen.json", found)
    click.echo(out / "chosen.json")


def prepare(tables: Sequence[Data]) -> tuple[TermTable, list[Side]]:
    """The terms that every table has, and each table's logarithms of them."""
    own = [term_table(data.branches) for data in tables]
    shared = [t for t in own[0].terms if all(t in set(other.terms) for other in own[1:])]
    sides = []
    for data, terms in zip(tables, own, strict=True):
        places = {term: i for i, term in enumerate(terms.terms)}
        picked = [places[term] for term in shared]
        part = TermTable(tuple(shared), terms.values[picked])
        sides.append(Side(data, part.logs, repeated_logs(part, data.repeated)))
    return TermTable(tuple(shared), sides[0].logs), sides


def choose(terms: TermTable, sides: Sequence[Side], rows: Sequence[IntArray]) -> Chosen:
    """The products by least regret among those that repeat on every table."""
    pool: dict[Factors, None] = {}
    for logs, ranks in _searches(sides, rows):
        pool |= dict.fromkeys(one.factors for one in search(logs, ranks, Beam())[:POOL])
    products = list(pool)
    regrets, steady, signs = [], [], np.ones(len(products))
    for place, (side, known) in enumerate(zip(sides, rows, strict=True)):
        scores = np.stack([one.logs(side.logs) for one in products])
        again = np.stack([one.logs(side.repeated) for one in products])
        rho = side.rho(scores, known)
        if place == 0:  # one sign for all tables
            signs = np.where(rho < 0, -1.0, 1.0)
        regrets.append(signs * rho - np.abs(rho).max())
        usable = np.isfinite(again).all(axis=1)
        agreed = agreement(scores, np.where(usable[:, np.newaxis], again, 0.0))
        steady.append(agreed - STABLE[side.data.table.name])
    complexity = [one.formula(terms).complexity for one in products]
    order = order_of(np.min(regrets, axis=0), np.min(steady, axis=0), complexity, 0.0)
    return Chosen(terms, [products[i] for i in order], signs[order])


def _searches(
    sides: Sequence[Side], rows: Sequence[IntArray]
) -> list[tuple[FloatArray, FloatArray]]:
    """What is searched: each table, and of several all rows together, centred table by table."""
    single = [
        (side.logs[:, known], rank_targets(side.data.table.targets[known]))
        for side, known in zip(sides, rows, strict=True)
    ]
    if len(single) == 1:
        return single
    logs, targets = [], []
    for values, ranks in single:
        logs.append(values - values.mean(axis=1, keepdims=True))
        centred = ranks - ranks.mean()
        targets.append(centred / np.sqrt(centred @ centred))
    return [*single, (np.concatenate(logs, axis=1), np.concatenate(targets))]


def held_out(terms: TermTable, sides: Sequence[Side], splits: int) -> dict[str, object]:
    """Medians over splits of test rho: the formula, the ensemble, the best count."""
    found: dict[str, list[list[float]]] = {side.data.table.name: [] for side in sides}
    for seed in range(splits):
        parts = [split(side.data.table, seed) for side in sides]
        known = [np.sort(np.concatenate([part.train, part.valid])) for part in parts]
        chosen = choose(terms, sides, known)
        for side, part, rows in zip(sides, parts, known, strict=True):
            table, test = side.data.table, part.open_test()
            members = chosen.products[:MEMBERS]
            scores = np.stack([one.logs(side.logs) for one in members])
            scores = chosen.signs[: len(members), np.newaxis] * scores
            values = (
                scores[0], rank_many(scores).mean(axis=0), best_count(table, rows).scores
            )  # fmt: skip
            found[table.name].append([spearman(v[test], table.targets[test]) for v in values])
    return {
        name: dict(zip(("formula", "ensemble", "count"), np.median(rows, axis=0), strict=True))
        for name, rows in found.items()
    }


if __name__ == "__main__":
    main()
