"""ETAS Table 4 reproduced: GPT-2 on WikiText-103, mean and deviation over seeds of the weights.

    python -m experiments.etas_table4.run --jobs 2

Also Figure 2 (b) of the paper: the rank mean of NTKT and SEPT as the weight moves from one to the
other. After an interruption the same command continues.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from experiments.measured import prints_measured
from experiments.reproduction import markdown, reproduce, thin, write
from lpzero.cli.output import data_option, jobs_option
from lpzero.parallel import Workers
from lpzero.proxies import Context, get, rank_mean
from lpzero.proxies.ranking import Ranking, rank
from spaces.tables import load

SOURCE = "ETAS Table 4"
STEPS = 10


@click.command()
@click.option("--archs", type=int, help="Use only this many architectures, for a quick run.")
@click.option("--seeds", default=5, show_default=True)
@click.option("--out", type=Path, default=Path("runs/etas_table4"), show_default=True)
@jobs_option
@data_option
@prints_measured
def main(**given: Any) -> None:
    """Print our Table 4 and Figure 2 (b) and write them to OUT."""
    table = thin(load("gpt2-wt103", given["data"]), given["archs"])
    ranking = Ranking(Context(workers=Workers(given["jobs"]), label="gpt2-wt103"), given["seeds"])
    rows = reproduce(table, SOURCE, ranking, ("decoder-parameters",))
    title = f"{SOURCE}, {len(table)} architectures, {given['seeds']} seeds"
    print(write(given["out"], "wikitext103", rows, title).read_text())
    spread = [row for row in rows if "rho_seeds_std" in row]
    print(markdown(spread, ("proxy", "rho_seeds_mean", "rho_seeds_std")))
    pairs = [(step / STEPS, 1 - step / STEPS) for step in range(STEPS + 1)]
    mixed = [rank_mean(get("ntkt"), get("sept"), weights=pair) for pair in pairs]
    found = {row["proxy"]: row for row in rank(table, mixed, Ranking(ranking.context))}
    text = markdown([found[proxy.name] for proxy in mixed], ("proxy", "rho", "tau"))
    (given["out"] / "figure2b.md").write_text("# ETAS Figure 2 (b)\n\n" + text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
