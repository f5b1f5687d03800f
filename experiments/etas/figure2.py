"""Figure 2 of ETAS: the rank mean of NTKT and SEPT as the weight moves from one to the other.

    python -m experiments.etas.figure2 --rows 40

(b) is WikiText-103. Of (a), ImageNet in AutoFormer's small space, no accuracies were released: the
accuracies of AutoFormer's supernet and distilled CIFAR-100, both in its tiny space, stand for it.
Every network's values are kept in the cache and the rows of every table and seed in OUT.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np

from experiments.measured import prints_measured
from experiments.reproduction import markdown
from experiments.resumable import Row, random_rows, resume
from lpzero import files
from lpzero.cli.options import data_option, jobs_option
from lpzero.judgement.correlation import kendall_many, spearman
from lpzero.parallel import Workers
from lpzero.proxies import Context, Measurements, get, rank_mean
from lpzero.report import style
from spaces.tables import load

TABLES = {
    "autoformer-imagenet": "(a) AutoFormer, ImageNet by its supernet",
    "autoformer-c100-kd": "(a) AutoFormer, distilled CIFAR-100",
    "gpt2-wt103": "(b) GPT-2, WikiText-103",
}
STEPS = 10


@click.command()
@click.option("--rows", "n_rows", type=int, help="Use this many random architectures per table.")
@click.option("--seeds", default=5, show_default=True)
@click.option("--out", type=Path, default=Path("runs/etas_figure2"), show_default=True)
@jobs_option
@data_option
@prints_measured
def main(n_rows: int | None, seeds: int, out: Path, jobs: int, data: str | None) -> None:
    """Print the correlations by weight, means over seeds, and draw them."""
    tables = {name: random_rows(load(name, data), n_rows) for name in TABLES}
    mixed = [
        rank_mean(get("ntkt"), get("sept"), weights=(step / STEPS, 1 - step / STEPS))
        for step in range(STEPS + 1)
    ]

    def work(key: str) -> Iterator[Row]:
        name, seed, _ = key.split("/")
        table = tables[name]
        context = Context(seed=int(seed), workers=Workers(jobs), label=key)
        measurements = Measurements(context)
        for step, proxy in enumerate(mixed):
            scores = proxy.score(table.space, table.archs, measurements)
            tau = float(kendall_many(scores[np.newaxis], table.targets).values[0])
            yield {
                "table": name,
                "n": len(table),
                "weight": step / STEPS,
                "rho": spearman(scores, table.targets),
                "tau": tau,
            }

    keys = [
        f"{name}/{seed}/{len(table)}" for name, table in tables.items() for seed in range(seeds)
    ]
    found = resume(out / "rows.jsonl", keys, work)
    summary = [_mean(found, name, step / STEPS) for name in tables for step in range(STEPS + 1)]
    files.write_csv(out / "figure2.csv", summary)
    files.write_json(out / "figure2.json", summary)
    draw(summary, out)
    text = markdown(summary, ("table", "n", "weight", "rho", "rho_std", "tau", "tau_std"))
    files.write_text(out / "figure2.md", text)
    click.echo(text)


def _mean(found: list[Row], table: str, weight: float) -> Row:
    """Mean and deviation over seeds of one weight of NTKT on one table."""
    rows = [row for row in found if (row["table"], row["weight"]) == (table, weight)]
    row: Row = {"table": table, "n": rows[0]["n"], "weight": weight}
    for measure in ("rho", "tau"):
        values = [one[measure] for one in rows]
        row |= {measure: float(np.mean(values)), f"{measure}_std": float(np.std(values))}
    return row


def draw(rows: list[Row], out: Path) -> None:
    """A panel per table: rho and tau against the weight of NTKT."""
    with style.look():
        figure = style.new(10.0, 3.4)
        for axes, (name, title) in zip(
            figure.subplots(1, len(TABLES)), TABLES.items(), strict=True
        ):
            of_table = [row for row in rows if row["table"] == name]
            x = [row["weight"] for row in of_table]
            for index, (measure, label) in enumerate(
                (("rho", "Spearman's ρ"), ("tau", "Kendall's τ"))
            ):
                mean, spread = (
                    np.array([row[key] for row in of_table]) for key in (measure, f"{measure}_std")
                )
                axes.errorbar(
                    x, mean, yerr=spread, color=style.COLOURS[index], marker=style.MARKERS[index],
                    markersize=4, capsize=2, label=label,
                )  # fmt: skip
            axes.set(xlabel="weight of NTKT (1: NTKT alone, 0: SEPT alone)", title=title)
            axes.legend(fontsize=8)
    for form in style.FORMATS:
        style.save(figure, out / f"figure2.{form}")


if __name__ == "__main__":
    main()
