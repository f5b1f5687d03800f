"""ETAS Table 4 over seeds of the weights: GPT-2 on WikiText-103, printed, released recipe, ours.

    python -m experiments.etas.table4 --rows 60

Every seed's rows are kept in OUT as soon as they are there and every network's values in the cache,
so that after an interruption the same command continues. `--rows` draws architectures at random,
the same ones for every proxy and seed. ETAS prints Spearman's rho; Pearson's correlation is beside
it, because LPZero prints Pearson's under that name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

from experiments.measured import prints_measured
from experiments.reproduction import markdown
from experiments.resumable import Row, random_rows, resume
from lpzero import files
from lpzero.cli.options import data_option, jobs_option
from lpzero.judgement.correlation import kendall_many, spearman
from lpzero.parallel import Workers
from lpzero.proxies import Context, Measurements, get
from lpzero.proxies.published import printed_in
from lpzero.proxies.ranking import prefetch
from spaces.tables import load

if TYPE_CHECKING:
    from spaces.tables import Table

TABLE, SOURCE = "gpt2-wt103", "ETAS Table 4"
# The deviations that the table prints beside rho.
PRINTED_SPREAD = {
    "snip": 0.04, "grad-norm": 0.03, "activation-distance": 0.02, "zico": 0.02, "meco": 0.02,
    "dss": 0.02, "length-distortion": 0.03, "ntkt": 0.02, "ntsr": 0.01,
}  # fmt: skip
# ETAS has no public code: the recipe is that of LPZero's, on a batch of its own. That of DSS reads
# the Linears of ViTs, which GPT-2 has not.
RELEASED = {"activation-distance": "activation-distance-released"}
ALSO = ("decoder-parameters", "attention-parameters")
MEASURES = ("rho", "tau", "pearson")
COLUMNS = ("proxy", "printed", "released recipe", "ours", "tau printed", "tau", "pearson", "seeds")


@click.command()
@click.option("--rows", "n_rows", type=int, help="Use this many random architectures.")
@click.option("--seeds", default=5, show_default=True)
@click.option("--released-seeds", default=1, show_default=True, help="Seeds of released recipes.")
@click.option("--out", type=Path, default=Path("runs/etas_table4"), show_default=True)
@jobs_option
@data_option
@prints_measured
def main(
    n_rows: int | None, seeds: int, released_seeds: int, out: Path, jobs: int, data: str | None
) -> None:
    """Print Table 4 with our figures over seeds and write it to OUT."""
    table = random_rows(load(TABLE, data), n_rows)
    workers = Workers(jobs)
    printed = printed_in(table.name, SOURCE)
    ours = (*printed, *ALSO)

    def work(key: str) -> Iterator[Row]:
        kind, seed, _ = key.split("/")
        context = Context(seed=int(seed), workers=workers, label=key)
        names = ours if kind == "ours" else tuple(RELEASED.values())
        yield from correlations(table, names, Measurements(context))

    keys = [f"ours/{seed}/{len(table)}" for seed in range(seeds)]
    keys += [f"released/{seed}/{len(table)}" for seed in range(released_seeds)]
    found = resume(out / "rows.jsonl", keys, work)
    rows = list(summary(found, ours))
    title = f"# {SOURCE}, {len(table)} of 200 architectures, {seeds} seeds of the weights\n\n"
    text = title + markdown(rows, COLUMNS)
    files.write_text(out / "wikitext103.md", text)
    files.write_json(out / "wikitext103.json", rows)
    files.write_csv(out / "rows.csv", found)
    click.echo(text)


def correlations(table: Table, names: Sequence[str], measurements: Measurements) -> Iterator[Row]:
    """A row per proxy: rho, tau and Pearson's correlation of its scores with the targets."""
    proxies = [get(name) for name in names]
    prefetch(table, proxies, measurements)
    for proxy in proxies:
        scores = proxy.score(table.space, table.archs, measurements)
        known = np.isfinite(scores)
        x, y = scores[known], table.targets[known]
        yield {
            "proxy": proxy.name,
            "n": int(known.sum()),
            "rho": spearman(x, y),
            "tau": float(kendall_many(x[np.newaxis], y).values[0]),
            "pearson": float(np.corrcoef(x, y)[0, 1]),
        }


def summary(found: Iterable[Row], names: Sequence[str]) -> Iterator[Row]:
    """Of each proxy what is printed, what the released recipe gives and ours, over seeds."""
    by_proxy: dict[str, list[Row]] = {}
    for row in found:
        by_proxy.setdefault(row["proxy"], []).append(row)
    printed = printed_in(TABLE, SOURCE)
    for name in sorted(names, key=lambda name: -(printed[name].rho or 0) if name in printed else 1):
        figure, rows = printed.get(name), by_proxy[name]
        spread = PRINTED_SPREAD.get(name)
        there = None if figure is None else f"{figure.rho:.2f}"
        recipe = RELEASED.get(name)
        yield {
            "proxy": name,
            "printed": there if spread is None else f"{there} ± {spread:.2f}",
            "released recipe": over_seeds(by_proxy.get(recipe, []), "rho") if recipe else None,
            "ours": over_seeds(rows, "rho"),
            "tau printed": None if figure is None else figure.tau,
            "tau": over_seeds(rows, "tau"),
            "pearson": over_seeds(rows, "pearson"),
            "seeds": len(rows),
        }


def over_seeds(rows: Sequence[Row], measure: str) -> str | None:
    """Mean and standard deviation over seeds; the deviation only where there are several."""
    if not rows:
        return None
    values = [row[measure] for row in rows]
    mean = f"{np.mean(values):.3f}"
    return mean if len(values) == 1 else f"{mean} ± {np.std(values):.3f}"


if __name__ == "__main__":
    main()
