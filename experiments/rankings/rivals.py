"""W-PCA, SWAP, AZ-NAS and Auto-Prox on the released tables, counters and printed numbers beside.

    python -m experiments.rankings.rivals

Every network is measured once and kept in the cache, so that a stopped run continues. A table's
rows are drawn at random (--rows); one family's tables share their architectures and rows. Prints a
table in Markdown for each and writes them to OUT.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from experiments.measured import prints_measured
from experiments.reproduction import markdown
from experiments.resumable import random_rows
from lpzero.cli.options import cache_option, data_option, jobs_option
from lpzero.cli.output import note
from lpzero.parallel import Workers
from lpzero.proxies import Context, Measurements, get
from lpzero.proxies.ranking import Ranking, prefetch, rank
from lpzero.sketches.store import cache_folder
from spaces.tables import Table, load

RIVALS = (
    "v-pca",
    "w-pca",
    "swap",
    "swap-regularised",
    "az-expressivity",
    "az-progressivity",
    "az-trainability",
    "az-nas",
    "az-nas-vit",
    "auto-prox",
    "auto-prox-normalised",
)
COUNTERS = ("parameters", "attention-parameters", "depth", "depth-sqrt-width", "flops", "sept")
PUBLISHED = "flexibert-upstream"  # the dimensions of the published FlexiBERT figures
# The rows drawn of each table; of these the first two share neither space nor networks.
TABLES = {
    "flexibert": 80,
    PUBLISHED: 120,
    "gpt2-wt103": 60,
    **{
        f"{space}-{images}-kd": 40
        for space in ("autoformer", "pit")
        for images in ("c100", "flowers", "chaoyang")
    },
}
COLUMNS = ("proxy", "rho", "rho_ci", "tau", "rho_given_params", "rho_within", "printed", "seconds")


@click.command()
@click.option("--table", "names", multiple=True, type=click.Choice(list(TABLES)))
@click.option("--rows", type=int, help="The rows drawn of every table; its own number by default.")
@click.option("--out", type=Path, default=Path("runs/rivals"), show_default=True)
@jobs_option
@cache_option
@data_option
@prints_measured
def main(**given: Any) -> None:
    """Print how the rivals rank each table and write it to OUT."""
    given["out"].mkdir(parents=True, exist_ok=True)
    folder = cache_folder(given["cache"])
    context = Context(folder=folder, workers=Workers(given["jobs"]), label="networks")
    for name in given["names"] or TABLES:
        n = given["rows"] or TABLES[name]
        table = random_rows(_loaded(name, given["data"]), n)
        note(f"{name}: {len(table)} rows")
        rows = list(ranked(table, context))
        (given["out"] / f"{name}.json").write_text(json.dumps(rows, indent=1) + "\n")
        text = f"## {name}, {len(table)} rows\n\n{markdown(rows, COLUMNS)}"
        (given["out"] / f"{name}.md").write_text(text, encoding="utf-8")
        print(text)


def _loaded(name: str, data: str | None) -> Table:
    return load("flexibert", data, name) if name == PUBLISHED else load(name, data)


def ranked(table: Table, context: Context) -> Iterator[Mapping[str, Any]]:
    """A row for each proxy, best first; counters in italics, what was chosen on the table named."""
    proxies = [get(name) for name in (*RIVALS, *COUNTERS)]
    prefetch(table, proxies, Measurements(context))
    for row in rank(table, proxies, Ranking(context)):
        name = row["proxy"]
        mark = "*" if name in COUNTERS else ""
        chosen = ", in sample" if row["in_sample"] else ""
        # Figures on FlexiBERT are printed for the published dimensions.
        is_same = table.space.name != "flexibert"
        printed = [f for f in row["published"] if f["source"].startswith(("W-PCA", "SWAP"))]
        yield {
            **row,
            "proxy": f"{mark}{name}{mark}{chosen}",
            "printed": "; ".join(map(_pair, printed)) if printed and is_same else None,
        }


def _pair(figure: Mapping[str, Any]) -> str:
    tau = "" if figure["tau"] is None else f", tau {figure['tau']}"
    return f"rho {figure['rho']}{tau}"


if __name__ == "__main__":
    main()
