"""MAPD of proxies on the released Pareto data of LTS: 38 decoders with latency and memory.

python -m experiments.etas.mapd --proxy ntsr --proxy 'sum(mul(abs(G), l1(H)))'
"""

from __future__ import annotations

from typing import Any

import click

from experiments.etas.fronts import mapd
from experiments.measured import prints_measured
from lpzero.cli.options import data_option
from lpzero.cli.output import print_rows
from lpzero.judgement import counters
from lpzero.judgement.correlation import spearman
from lpzero.proxies import Measurements, find
from lpzero.search.improvement import front
from spaces.tables import load

COSTS = ("latency", "memory")


@click.command()
@click.option(
    "--proxy", "proxies", multiple=True, help="A proxy to compare with the counters; repeatable."
)
@data_option
@prints_measured
def main(proxies: tuple[str, ...], data: str | None) -> None:
    """Print the MAPD of each proxy by latency and by memory."""
    table = load("gpt2-lm1b-corei7-pareto", data)
    measurements = Measurements()
    rows = []
    for name in [*counters.names(), *proxies]:
        scores = find(name).score(table.space, table.archs, measurements)
        row: dict[str, Any] = {"proxy": name, "rho": spearman(scores, table.targets)}
        for cost in COSTS:
            costs = table.extra[cost]
            row[f"MAPD {cost} %"] = 100 * mapd(scores, -table.targets, costs)
            row[f"on front {cost}"] = len(front(scores, costs))
        rows.append(row)
    true = {cost: len(front(table.targets, table.extra[cost])) for cost in COSTS}
    title = f"{table.name}: {len(table)} architectures, on the true front {true}"
    rows.sort(key=lambda row: row["MAPD latency %"])
    print_rows(rows, "table", title=title)


if __name__ == "__main__":
    main()
