"""Figure 1 (d) of ETAS: the best perplexity found against evaluations, by proxy, over seeds.

    python -m experiments.etas.figure1

Four panels: the space of the released table and the paper's own, each with a surrogate of the table
at the paper's constants and confined to the table's rows at smaller ones. Every search has its own
directory; after an interruption the same command continues.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from experiments.etas.evaluations import requests
from experiments.etas.settings import FIGURE_1
from experiments.measured import prints_measured
from experiments.reproduction import markdown
from lpzero import files
from lpzero.cli.options import data_option, jobs_option
from lpzero.report import style
from lpzero.search import Resources
from lpzero.search.comparison import compare, curve_rows

COLUMNS = ("panel", "arm", "seeds", "reached", "needed", "needed_ci", "best", "best_ci")
TITLES = {
    "released-surrogate": "space of the table, surrogate",
    "etas-surrogate": "space of ETAS up to 41.8 M, surrogate",
    "released-table": "the table's 200 rows",
    "etas-table": "the table's rows in the space of ETAS",
}


@click.command()
@click.argument("names", metavar="[PANEL]...", nargs=-1, type=click.Choice(list(FIGURE_1)))
@click.option("--seeds", type=click.IntRange(min=2), help="Seeds per arm.  [default: 5]")
@click.option("--out", type=Path, default=Path("runs/etas-figure1"), show_default=True)
@jobs_option
@data_option
@prints_measured
def main(names: tuple[str, ...], seeds: int | None, out: Path, jobs: int, data: str | None) -> None:
    """Print the result of every arm; write the curves and the figure to OUT."""
    summary: list[dict[str, Any]] = []
    curves: list[dict[str, Any]] = []
    thresholds: dict[str, float | None] = {}
    for name in names or FIGURE_1:
        setting = FIGURE_1[name]
        around = Resources(data=data, jobs=jobs, label=name)
        n_seeds = seeds or setting.seeds
        found = compare(requests(setting), n_seeds, around, out / name, resume=True)
        summary += [{"panel": name, **_as_perplexity(row)} for row in found.rows]
        curves += [{"panel": name, **row} for row in curve_rows(found.results)]
        thresholds[name] = found.threshold
    curves = [{**row, **_negated(row)} for row in curves]
    files.write_csv(out / "figure1.csv", curves)
    files.write_json(out / "figure1.json", {"rows": summary, "thresholds": thresholds})
    draw(curves, thresholds, out)
    text = markdown(summary, COLUMNS)
    files.write_text(out / "figure1.md", text)
    click.echo(text)


def _as_perplexity(row: dict[str, Any]) -> dict[str, Any]:
    """The row with perplexities, which the targets are minus of."""
    low, high = row["best_ci"]
    return {**row, "best": -row["best"], "best_ci": (-high, -low)}


def _negated(row: dict[str, Any]) -> dict[str, float]:
    return {"mean": -row["mean"], "low": -row["high"], "high": -row["low"]}


def draw(curves: list[dict[str, Any]], thresholds: dict[str, float | None], out: Path) -> None:
    """A panel per setting, a line per arm with its interval over seeds."""
    with style.look():
        figure = style.new(10.0, 7.0 if len(thresholds) > 2 else 3.6)
        n_rows = (len(thresholds) + 1) // 2
        panels = list(figure.subplots(n_rows, 2, squeeze=False).flat)
        for unused in panels[len(thresholds) :]:
            unused.remove()
        arms = list(dict.fromkeys(row["arm"] for row in curves))
        for axes, (name, threshold) in zip(panels, thresholds.items(), strict=False):
            for index, arm in enumerate(arms):
                of_arm = [row for row in curves if (row["panel"], row["arm"]) == (name, arm)]
                if not of_arm:
                    continue
                x, mean, low, high = (
                    [row[key] for row in of_arm] for key in ("evaluations", "mean", "low", "high")
                )
                colour = style.COLOURS[index % len(style.COLOURS)]
                axes.plot(x, mean, color=colour, linestyle=style.DASHES[index], label=arm)
                axes.fill_between(x, low, high, color=colour, alpha=0.12, linewidth=0)
            if threshold is not None:
                axes.axhline(-threshold, color=style.GREY, linewidth=0.8, label="best 1%")
            axes.set(title=TITLES[name], xlabel="evaluations", ylabel="best perplexity")
            axes.legend(loc="upper right", fontsize=7)
    for form in style.FORMATS:
        style.save(figure, out / f"figure1.{form}")


if __name__ == "__main__":
    main()
