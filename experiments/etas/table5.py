"""Table 5 of ETAS: MAPD of searches within budgets, and what a search costs.

    python -m experiments.etas.table5

ETAS runs within several budgets of flops, which stand for latency; what it found after 1, 3, 6 and
all evaluations is compared with the true front of perplexity and flops of the table, of which every
row is known. The cost of a
search is the number of networks that it scores times the processor seconds of the proxy for the
median architecture; its CO2 follows from stated watts (`lpzero.search.cost`). Searches have
directories of their own; after an interruption the same command continues.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from experiments.etas.evaluations import requests
from experiments.etas.fronts import found_mapd
from experiments.etas.settings import ON_TABLE, PAPER, Setting
from experiments.measured import prints_measured
from experiments.reproduction import markdown
from lpzero import files
from lpzero.arrays import FloatArray
from lpzero.cli.options import data_option, jobs_option
from lpzero.proxies import Context, Measurements, find
from lpzero.search import Resources
from lpzero.search.comparison import compare, mean_interval
from lpzero.search.cost import Footprint
from spaces.tables import load

if TYPE_CHECKING:
    from spaces.tables import Table

TABLE, SPACE, COST = "gpt2-wt103", "gpt2-released", "flops"
SHARES = (0.25, 0.5, 0.75, 1.0)  # of the table's rows that a budget admits
ARMS = (*PAPER, "decoder-parameters")
PRINTED = {"none": 1.6, "parameters": 0.8, "flops": 0.7, "sept": 0.7, "ntkt": 0.6, "ntsr": 0.5}
AFTER = (1, 3, 6, 33)  # evaluations: the first, the parents, one iteration more, all
COLUMNS = (
    "proxy", "printed MAPD %", *(f"after {n}" for n in AFTER), "interval after 3", "perplexity",
    "scored", "seconds", "CO2 g", "CO2 lb",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found: perplexity and cost of its best after AFTER, and how many it scored."""

    best: tuple[tuple[float, float], ...]
    scored: int


@click.command()
@click.option("--seeds", default=5, show_default=True)
@click.option("--watts", default=65.0, show_default=True, help="Power of the machine.")
@click.option("--out", type=Path, default=Path("runs/etas-table5"), show_default=True)
@jobs_option
@data_option
@prints_measured
def main(seeds: int, watts: float, out: Path, jobs: int, data: str | None) -> None:
    """Print Table 5 on the rows of the table and write it to OUT."""
    table = load(TABLE, data, SPACE)
    costs = np.array([float(table.space.flops(arch)) for arch in table.archs])
    setting = Setting("table5", SPACE, "table", ARMS, seeds, None, ON_TABLE)
    by_proxy: dict[str, list[list[Found]]] = {}
    for share in SHARES:
        budget = float(np.quantile(costs, share))
        around = Resources(data=data, jobs=jobs, label=f"{share:.0%} of the rows")
        folder = out / f"{round(100 * share)}"
        compared = compare(
            requests(setting, {COST: (None, budget)}), seeds, around, folder, resume=True
        )
        for proxy, runs in zip(ARMS, compared.results.values(), strict=True):
            found = [Found(best_after(table, run["trace"]), run["scored"]) for run in runs]
            by_proxy.setdefault(proxy, []).append(found)
    rows = list(summary(table, costs, by_proxy, watts))
    title = f"{len(table)} rows of {TABLE}, {len(SHARES)} budgets of {COST}, {seeds} seeds\n\n"
    files.write_json(out / "table5.json", rows)
    files.write_csv(out / "table5.csv", rows)
    files.write_text(out / "table5.md", title + markdown(rows, COLUMNS))
    click.echo(title + markdown(rows, COLUMNS))


def best_after(table: Table, trace: list[dict[str, Any]]) -> tuple[tuple[float, float], ...]:
    """Perplexity and cost of the best after so many evaluations, or after as many as there were."""
    evaluated = [(-entry["target"], entry["arch"]) for entry in trace if entry["evaluations"]]
    found = []
    for n in AFTER:
        perplexity, arch = min(evaluated[:n], key=lambda pair: pair[0])
        found.append((perplexity, float(table.space.flops(table.space.from_json(arch)))))
    return tuple(found)


def summary(
    table: Table, costs: FloatArray, by_proxy: Mapping[str, list[list[Found]]], watts: float
) -> Iterator[dict[str, Any]]:
    """A row per proxy: over seeds the mean MAPD, the last budget's perplexity, the cost."""
    for proxy, by_budget in by_proxy.items():
        per_seed = np.array(
            [
                [
                    100
                    * found_mapd(
                        *np.array([one.best[k] for one in budgets]).T, -table.targets, costs
                    )
                    for k in range(len(AFTER))
                ]
                for budgets in zip(*by_budget, strict=True)
            ]
        )  # (seeds, AFTER)
        scored = float(np.mean([one.scored for budget in by_budget for one in budget]))
        cost = Footprint(scored * seconds_each(table, proxy), watts)
        yield {
            "proxy": proxy,
            "printed MAPD %": PRINTED.get(proxy),
            **{f"after {n}": float(per_seed[:, k].mean()) for k, n in enumerate(AFTER)},
            "interval after 3": mean_interval(per_seed[:, AFTER.index(3)].tolist()),
            "perplexity": float(np.mean([one.best[-1][0] for one in by_budget[-1]])),
            "scored": scored,
            "seconds": cost.seconds,
            "CO2 g": cost.grams,
            "CO2 lb": f"{cost.pounds:.1e}",
        }


def seconds_each(table: Table, proxy: str) -> float:
    """The processor seconds of the proxy for the table's median architecture; 0 for counts."""
    if proxy == "none":
        return 0.0
    measures = find(proxy).measures
    if not measures:
        return 0.0
    found = Measurements(Context()).records(table.space, table.archs, measures)
    return float(np.median(np.sum([[r.seconds for r in rs] for rs in found.values()], axis=0)))


if __name__ == "__main__":
    main()
