"""Every proxy on every vision table: Spearman's rho, proxies down, tables across.

    python -m experiments.rankings.vision --jobs 2

The tables of a family share their architectures, so every network runs once. After an interruption
the same command continues.
"""

from __future__ import annotations

from pathlib import Path
from statistics import mean
from typing import Any

import click
import numpy as np

from experiments.measured import prints_measured
from experiments.reproduction import markdown
from lpzero.cli.options import data_option, jobs_option
from lpzero.judgement import counters
from lpzero.judgement.correlation import spearman
from lpzero.parallel import Workers
from lpzero.proxies import Context, Measurements
from lpzero.proxies.ranking import prefetch, ranked_by_default
from spaces import tables

FAMILIES = ("autoformer", "pit")


@click.command()
@click.option("--family", "families", multiple=True, default=FAMILIES, show_default=True)
@click.option("--out", type=Path, default=Path("runs/vision"), show_default=True)
@jobs_option
@data_option
@prints_measured
def main(families: tuple[str, ...], out: Path, jobs: int, data: str | None) -> None:
    """Print the rho of every proxy on every table of a family and write it to OUT."""
    out.mkdir(parents=True, exist_ok=True)
    for family in families:
        chosen = [n for n in tables.names() if n.startswith(f"{family}-")]
        sisters = {name.removeprefix(f"{family}-"): tables.load(name, data) for name in chosen}
        measurements = Measurements(Context(workers=Workers(jobs), label=family))
        text = f"# {family}\n\n" + markdown(rows(sisters, measurements), ("proxy", *sisters))
        (out / f"{family}.md").write_text(text, encoding="utf-8")
        print(text)


def rows(sisters: dict[str, Any], measurements: Measurements) -> list[dict[str, Any]]:
    """A row for each proxy with its rho on each table; highest mean over the distilled first."""
    first = next(iter(sisters.values()))
    proxies = ranked_by_default(first.space)
    prefetch(first, proxies, measurements)
    found = []
    for proxy in proxies:
        scores = proxy.score(first.space, first.archs, measurements)
        known = np.isfinite(scores)
        mark = "*" if proxy.name in counters.names() else ""
        row: dict[str, Any] = {"proxy": f"{mark}{proxy.name}{mark}"}
        for name, table in sisters.items():
            row[name] = spearman(scores[known], table.targets[known]) if known.sum() > 1 else None
        found.append(row)
    distilled = [name for name in sisters if name.endswith("-kd")]
    return sorted(found, key=lambda row: -mean(row[name] or 0.0 for name in distilled))


if __name__ == "__main__":
    main()
