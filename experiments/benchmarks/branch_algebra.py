"""The cost of a formula: by branch algebra, and by the three methods it replaces.

Everything is measured in one run on the same architectures, in processor time of one thread.
(a) a loop of scipy.stats.spearmanr over ready scores; (b) the reference evaluation on sketches,
then scipy; (c) every network built and run again for the formula, then (b).
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
import scipy.stats

from experiments.measured import prints_measured
from lpzero.cli.options import cache_option, data_option, format_option
from lpzero.cli.output import print_rows
from lpzero.exhaust.results import formula_at
from lpzero.exhaust.shards import ShardFiles, ShardTask, cut, family_scorer
from lpzero.judgement.correlation import spearman_many
from lpzero.judgement.ranks import rank_targets
from lpzero.judgement.table import TableJudge
from lpzero.scores.branch_table import branch_table
from lpzero.scores.chains import surviving
from lpzero.scores.tabulation import tabulate
from lpzero.scores.values import Values
from lpzero.sketches.builder import Builder, build_sketch, sketches
from lpzero.sketches.sketch import Sketch, SketchOptions
from lpzero.sketches.store import Store, cache_folder
from primitives import naive
from primitives.enumeration import families
from primitives.formula import Formula
from primitives.registry import BINARIES, UNARIES
from primitives.statistics import STATISTICS
from spaces.tables import load

GIGABYTE = 1 << 30


@click.command()
@click.option("--table", default="flexibert", show_default=True)
@click.option("--archs", "n_archs", default=50, show_default=True)
@click.option("--formulas", "n_formulas", default=100, show_default=True, help="For (b).")
@click.option("--networks", default=1, show_default=True, help="Formulas for (c).")
@cache_option
@format_option
@data_option
@prints_measured
def main(
    table: str,
    n_archs: int,
    n_formulas: int,
    networks: int,
    cache: str | None,
    form: str,
    data: str | None,
) -> None:
    """Print microseconds per formula for each way, and how they grow."""
    loaded = load(table, data)
    store = Store(cache_folder(cache))
    found = sketches(loaded, Builder(store=store))
    rows = np.arange(0, len(loaded), len(loaded) // n_archs)[:n_archs]
    bench = Bench(loaded, [found[int(row)] for row in rows], rows)
    print_rows(bench.ways(n_formulas, networks), form, f"{table}, {len(rows)} architectures")
    print_rows(bench.growth(), form, "growth, chains of two by branch algebra")
    print_rows(bench.chain_lengths(), form, "chain length, formulas one by one")


class Bench:
    """The same architectures for every way."""

    def __init__(self, table: Any, sketches: Sequence[Sketch], rows: Any) -> None:
        self.table, self.sketches, self.rows = table, sketches, rows
        self.targets = table.targets[rows]
        self.chains = surviving(2)
        self.families = tuple(families(2))

    def ways(self, n_formulas: int, networks: int) -> list[dict[str, Any]]:
        """A row per way; the branch tables are counted in, spread over the space."""
        tables = clock(lambda: [tabulate([one], self.chains)[0] for one in self.sketches])
        branches = branch_table(self.sketches, self.chains)
        algebra, n_space = self.space_seconds(branches, self.rows)
        ours = (tables + algebra) / n_space
        picked = self.drawn(n_formulas)
        blocks = [blocks_of(one) for one in self.sketches]
        self.check_equal(branches, picked, blocks)
        scores = Values(branches).scores(picked)
        ready = scores[np.isfinite(scores).all(axis=1)]
        many = np.tile(ready, (200, 1))
        ranks = rank_targets(self.targets)
        batched = clock(lambda: spearman_many(many, ranks)) / len(many)
        loop = clock(lambda: [spearmanr(s, self.targets) for s in many[:500]]) / 500
        reference = clock(lambda: [self.by_reference(f, blocks) for f in picked]) / len(picked)
        rerun = clock(lambda: [self.by_networks(f) for f in picked[:networks]]) / networks
        return [
            way("branch algebra, tables and all measures", ours, ours, f"{n_space:,} formulas"),
            way("  of which scores and measures", algebra / n_space, ours, "tables ready"),
            way("  of which rho alone, scores ready", batched, ours, f"{len(many):,} formulas"),
            way("(a) scipy loop, scores ready", loop, ours, "500 formulas"),
            way("(b) reference on sketches", reference, ours, f"{len(picked)} formulas"),
            way("(c) networks built and run again", rerun, ours, f"{networks} formulas"),
        ]

    def space_seconds(self, branches: Any, rows: Any) -> tuple[float, int]:
        """Scores and measures of every formula with chains of two, sum and mean."""
        laid_out = family_scorer(branches)
        stick = TableJudge(self.table).measures(rows)
        task = ShardTask(laid_out, stick, self.families, ShardFiles(Path(), ""), GIGABYTE)
        seconds = clock(lambda: [task.measure(block) for block in cut(self.families)])
        return seconds, 2 * sum(map(len, self.families))

    def drawn(self, count: int) -> list[Formula]:
        """Formulas of the space, each family as often as it is large."""
        rng = random.Random(0)
        sizes = [len(family) for family in self.families]
        picked = rng.choices(self.families, sizes, k=count)
        return [
            formula_at(
                family,
                rng.randrange(len(family.left)),
                rng.randrange(max(1, len(family.right))),
                rng.choice(["sum", "mean"]),
            )
            for family in picked
        ]

    def check_equal(self, branches: Any, formulas: list[Formula], blocks: Any) -> None:
        """Exit unless both methods give the same scores."""
        evaluator = Values(branches)
        for formula, found in zip(formulas, evaluator.scores(formulas), strict=True):
            expected = [naive.score(formula, b) for b in blocks[:5]]
            np.testing.assert_allclose(found[:5], expected, rtol=1e-5, err_msg=str(formula))

    def by_reference(self, formula: Formula, blocks: Any) -> float:
        return spearmanr([naive.score(formula, b) for b in blocks], self.targets)

    def by_networks(self, formula: Formula) -> float:
        space, options = self.table.space, SketchOptions()
        fresh = (build_sketch(space, self.table.archs[row], options) for row in self.rows)
        return spearmanr([naive.score(formula, blocks_of(one)) for one in fresh], self.targets)

    def growth(self) -> list[dict[str, Any]]:
        """With architectures, and with blocks at one number of architectures."""
        depths = np.array([one.n_blocks for one in self.sketches])
        n = len(depths)
        parts = {f"{k} architectures": np.arange(k) for k in (n // 4, n // 2, n)}
        few = min(n // 4, *(int((depths == d).sum()) for d in (depths.min(), depths.max())))
        for depth in sorted({int(depths.min()), int(depths.max())}):
            parts[f"{few} of {depth} blocks"] = np.flatnonzero(depths == depth)[:few]
        return [self.growth_row(name, picked) for name, picked in parts.items()]

    def growth_row(self, name: str, picked: Any) -> dict[str, Any]:
        chosen = [self.sketches[i] for i in picked]
        tables = clock(lambda: [tabulate([one], self.chains)[0] for one in chosen])
        seconds, n = self.space_seconds(branch_table(chosen, self.chains), self.rows[picked])
        return {
            "on": name,
            "tables_s": tables,
            "space_s": seconds,
            "us_per_formula": 1e6 * (tables + seconds) / n,
        }

    def chain_lengths(self) -> list[dict[str, Any]]:
        """Formulas evaluated one by one, as a campaign does, against the reference."""
        evaluator = Values(branch_table(self.sketches, self.chains))
        blocks = [blocks_of(one) for one in self.sketches]
        rng = random.Random(1)
        rows = []
        alive = [name for name in UNARIES if name not in ("disconnect", "identity")]
        for length in range(1, 6):
            formulas = [
                Formula.of(
                    rng.choice(list(BINARIES)),
                    *((rng.choice(list(STATISTICS)), rng.choices(alive, k=length)) for _ in "ab"),
                )
                for _ in range(40)
            ]
            fast = clock(lambda f=formulas: [evaluator.score(one) for one in f]) / 40
            slow = clock(
                lambda f=formulas: [[naive.score(one, b) for b in blocks] for one in f[:5]]
            )
            rows.append({"chain": length, "ms": 1e3 * fast, "reference_ms": 1e3 * slow / 5})
        return rows


def way(name: str, seconds: float, ours: float, over: str) -> dict[str, Any]:
    return {
        "way": name,
        "us_per_formula": 1e6 * seconds,
        "formulas_per_s": f"{1 / seconds:,.2f}",
        "times_ours": f"{seconds / ours:,.1f}",
        "measured_on": over,
    }


def clock(work: Any) -> float:
    """Processor seconds of this process."""
    start = time.process_time()
    work()
    return time.process_time() - start


def spearmanr(scores: Any, targets: Any) -> float:
    return float(scipy.stats.spearmanr(scores, targets).statistic)


def blocks_of(sketch: Sketch) -> list[naive.Block]:
    names = list(STATISTICS)
    return [{s: sketch.matrices(b, s) for s in names} for b in range(sketch.n_blocks)]


if __name__ == "__main__":
    main()
