"""engine-decoder and engine-universal: chosen by what holds on tables left out.

python -m experiments.engine_proxies.choose

The rule of `lpzero discover TABLE TABLE ... --choose nested` (lpzero/discover/shared_levels.py) on
all rows of four tables of decoders, and of these and three more. Sizes alone are read; with
--networks also what networks of the decoders give. Every table is also left out in turn: what is
found on the others, at the level that all tables choose and at the one that the others choose, is
scored on it beside its counters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from experiments.measured import prints_measured
from experiments.reproduction import markdown
from lpzero import files
from lpzero.arrays import FloatArray, IntArray
from lpzero.cli.options import cache_option, data_option, jobs_option
from lpzero.discover.discovery import Campaign
from lpzero.discover.levels import COUNT, RELIABLE, STABLE, ReliableTerms
from lpzero.discover.objective import rank_mean
from lpzero.discover.shared_levels import (
    MEMBERS,
    SharedChoice,
    SharedLevel,
    choose_shared,
    reads_words,
    shared_levels,
)
from lpzero.judgement import counters
from lpzero.judgement.correlation import spearman
from lpzero.scores.formula_rivals import size_values
from lpzero.scores.gaussian import NormalScale, normal_targets
from lpzero.scores.predictor import ProcessOfRows, unlike
from lpzero.scores.products import Found
from lpzero.scores.terms import TermLanguage, shared_term_tables
from spaces.tables import Table, load

DECODERS = ("gpt2-wt103", "openlm", "transformer-xl", "gpt2-lm1b-corei7-pareto")
TABLES = {
    "engine-decoder": DECODERS,
    "engine-universal": (*DECODERS, "flexibert", "nano-gpt2", "nano-flexibert"),
}
READ_NETWORKS = ("engine-decoder",)  # with --networks
COLUMNS = (
    "table left out", "formula", "ensemble", "predictor", "level chosen without it",
    "best counter", "best count of the others", "found without it",
)  # fmt: skip


@dataclass(frozen=True)
class Tables:
    """Tables with all their rows, and the levels of the terms that they share."""

    tables: Sequence[Table]
    levels: Sequence[SharedLevel]

    @property
    def targets(self) -> list[FloatArray]:
        return [table.targets for table in self.tables]

    @property
    def rows(self) -> list[IntArray]:
        return [np.arange(len(table)) for table in self.tables]

    def choice(self) -> SharedChoice:
        """The level that holds on tables left out."""
        choice = choose_shared(self.levels, self.targets, self.rows)
        assert choice is not None, "the tables have counters that differ"
        return choice

    def without(self, place: int) -> Tables:
        """The other tables."""
        kept = [i for i in range(len(self.tables)) if i != place]
        levels = [SharedLevel(tuple(level.on[i] for i in kept)) for level in self.levels]
        return Tables([self.tables[i] for i in kept], levels)


@click.command()
@click.option("--networks", "reads_networks", is_flag=True, help="Levels of networks too.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("runs/engine_proxies"))
@jobs_option
@cache_option
@data_option
@prints_measured
def main(reads_networks: bool, out: Path, jobs: int, cache: str | None, data: str | None) -> None:
    """Write the chosen formulas and print what holds on each table left out."""
    found: dict[str, Any] = {}
    for name, names in TABLES.items():
        if reads_networks and name in READ_NETWORKS:
            given = networks(names, jobs, cache, data)
        else:
            given = sizes([load(table, data) for table in names])
        choice = given.choice()
        best = choice.level.best(given.targets, given.rows, MEMBERS)
        members = [str(choice.level.formula(product)) for product in best]
        found[name] = {"tables": names, "members": members}
        levels = [line.to_json() for line in choice.lines]
        print(f"{name}: level {choice.chosen}\n")
        print(markdown(levels, ("level", "n_terms", "rho", "error", "behind", "behind_error")))
        lines = [left_out(given, choice.chosen, place) for place in range(len(names))]
        print(markdown(lines, COLUMNS))
        rhos = dict(zip(names, best[0].rhos, strict=True))
        print(f"{members[0]}: on the rows it was chosen on {rhos}\n")
    out.mkdir(parents=True, exist_ok=True)
    files.write_json(out / "chosen.json", found)
    click.echo(out / "chosen.json")


def networks(names: Sequence[str], jobs: int, cache: str | None, data: str | None) -> Tables:
    """The tables with terms of their networks: chains of one operation, and sizes."""
    campaign = Campaign(names, choose="nested", unaries=1, jobs=jobs, cache=cache, data=data)
    tables = [load(name, data) for name in names]
    return Tables(tables, shared_levels(campaign.objective.shared_terms))


def sizes(tables: Sequence[Table]) -> Tables:
    """The tables with terms of sizes and counters alone; no network is built."""
    names = [name for name in counters.names() if not counters.reads(name)]
    values = [
        size_values(table, {name: counters.score(name, table) for name in names})
        for table in tables
    ]
    terms = shared_term_tables(values, TermLanguage(statistics=()))
    kept = np.array([not reads_words(term) for term in terms[0].terms])
    ones = np.ones(int(kept.sum()))
    reliable = [ReliableTerms(of.of(kept), ones, ones, frozenset(names)) for of in terms]
    levels = [of for of in shared_levels(reliable) if of.name not in (STABLE, RELIABLE)]
    return Tables(tables, levels)


def left_out(given: Tables, chosen: str, place: int) -> dict[str, Any]:
    """What is found without the table of that place, on it and beside its counters."""
    table, others = given.tables[place], given.without(place)
    own = {level.name: level.on[place] for level in given.levels}

    def found(name: str) -> list[Found]:
        level = next(level for level in others.levels if level.name == name)
        return list(level.best(others.targets, others.rows, MEMBERS))

    def rho(scores: FloatArray) -> float:
        return round(spearman(scores, table.targets), 4)

    products = found(chosen)
    scores = np.stack([own[chosen].scores(product) for product in products])
    without = others.choice().chosen
    counted = {name: rho(counters.score(name, table)) for name in counters.defined(table.space)}
    best = max(counted, key=lambda name: counted[name])
    return {
        "table left out": table.name,
        "formula": rho(scores[0]),
        "ensemble": rho(rank_mean(scores)),
        "predictor": rho(predicted(given, place, chosen, products[0])),
        "level chosen without it": f"{without} {rho(own[without].scores(found(without)[0]))}",
        "best counter": f"{best} {counted[best]}",
        "best count of the others": rho(own[COUNT].scores(found(COUNT)[0])),
        "found without it": f"`{own[chosen].formula(products[0])}`",
    }


def predicted(given: Tables, place: int, chosen: str, product: Found) -> FloatArray:
    """The predictor's scores (A,) of the table of that place, without its targets.

    A Gaussian process on the terms of the last level, each scaled within its table, and the
    product, as normal scores: their mean, as a campaign's predictor has it.
    """
    last, level = given.levels[-1], next(of for of in given.levels if of.name == chosen)
    logs = [of.terms.logs - of.terms.logs.mean(axis=1, keepdims=True) for of in last.on]
    spreads = [of.std(axis=1, keepdims=True) for of in logs]
    scaled = [of / np.where(by > 0, by, 1.0) for of, by in zip(logs, spreads, strict=True)]
    others = [i for i in range(len(given.tables)) if i != place]
    known = np.concatenate([scaled[i] for i in others], axis=1)
    kept = unlike(known)
    names = [str(term) for term, keep in zip(last.on[0].terms.terms, kept, strict=True) if keep]

    def described(values: FloatArray) -> list[dict[str, float]]:
        return [dict(zip(names, row, strict=True)) for row in values[kept].T.tolist()]

    targets = np.concatenate([normal_targets(given.tables[i].targets) for i in others])
    of_process = ProcessOfRows(described(known), targets).predict(described(scaled[place]))
    scores = level.on[place].scores(product)
    return np.asarray(of_process + NormalScale(scores)(scores))


if __name__ == "__main__":
    main()
