"""Figure 6 of "Training-free NAS for RNNs and transformers": GLUE after more and more pretraining.

    python -m experiments.training_free.figure6

From the released file alone: architectures of the benchmark pretrained for 1,000,000 steps and
fine-tuned every 50,000. Prints the mean score after each number of steps and how the
architectures rank then, and draws the figure in OUT. Two of the file's columns are wrong
(`mixed_up`); they are shown and left out of the ranks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from experiments.measured import prints_measured
from experiments.reproduction import markdown
from experiments.training_free.draw import curves
from lpzero import files
from lpzero.cli.options import data_option
from lpzero.errors import InputError
from lpzero.judgement.correlation import spearman
from spaces.tables import data_root, load
from spaces.untrusted import read_regular

PRETRAINING = Path("flexibert/BERT_benchmark_train_ablation.json")
SOURCE = "data/BERT_benchmark_train_ablation.json of aaronserianni/training-free-nas"
N_FIGURE = 10  # the figure has ten architectures, the file more
COLUMNS = ("steps", "mean", "lowest", "highest", "rho_with_last", "rho_with_benchmark")
_MOST = 100  # GLUE is a mean of per cents
Curve = Mapping[int, float]  # GLUE by the steps of pretraining


@click.command()
@click.option("--out", type=Path, default=Path("runs/training_free"), show_default=True)
@data_option
@prints_measured
def main(out: Path, data: str | None) -> None:
    """Print the scores by steps of pretraining and draw them in OUT."""
    table = load("flexibert", data)
    root = data_root(data)
    assert root is not None, "the table was loaded from it"
    found = released(root / PRETRAINING)
    glue = dict(zip(table.ids, table.targets.tolist(), strict=True))
    rows = by_steps(list(found.values()), [glue[str(name)] for name in found])
    files.write_json(out / "figure6.json", {"curves": found, "rows": rows})
    curves(list(found.values())[:N_FIGURE], mixed_up(found.values()), out / "figure6.png")
    click.echo(f"figure6, {len(found)} architectures\n\n{markdown(rows, COLUMNS)}")
    of_figure = [glue[str(name)] for name in list(found)[:N_FIGURE]]
    click.echo(f"the figure's {N_FIGURE} in the benchmark: mean {np.mean(of_figure):.3f}")
    for step in mixed_up(found.values()):
        apart = taken_apart(found.values(), step)
        last = [curve[max(curve)] for curve in found.values() if curve[step] > _MOST]
        click.echo(
            f"mixed up: {step:,}; taken apart in {len(apart)}: mean {np.mean(apart):.3f},"
            f" {np.mean(last):.3f} at the end"
        )


def released(path: Path) -> dict[int, dict[int, float]]:
    """The GLUE score by steps of every architecture that has scores, by its number."""
    try:
        records = json.loads(read_regular(path))
    except FileNotFoundError:
        raise InputError(f"there is no {path}; it is {SOURCE}") from None
    return {
        record["id"]: {int(step): scores["glue"] for step, scores in record["scores"].items()}
        for record in records
        if record["scores"]
    }


def mixed_up(found: Iterable[Curve]) -> list[int]:
    """Steps whose scores are those of ten times as many steps, or have these added to them."""
    all_curves = list(found)
    return [
        step
        for step in all_curves[0]
        if step > 0
        and 10 * step in all_curves[0]
        and all(one[step] == one[10 * step] or one[step] > _MOST for one in all_curves)
    ]


def taken_apart(found: Iterable[Curve], step: int) -> list[float]:
    """The scores after so many steps where those of ten times as many were added to them."""
    return [curve[step] - curve[10 * step] for curve in found if curve[step] > _MOST]


def by_steps(found: Sequence[Curve], benchmark: Sequence[float]) -> list[dict[str, Any]]:
    """A row for each number of steps: the mean of the figure's ten, and how all of them rank."""
    wrong, last = mixed_up(found), max(found[0])
    final = np.array([curve[last] for curve in found])
    rows = []
    for step in sorted(found[0]):
        scores = np.array([curve[step] for curve in found])
        few = scores[:N_FIGURE]
        row = {"steps": f"{step:,}", "mean": float(few.mean())}
        row |= {"lowest": float(few.min()), "highest": float(few.max())}
        if step not in wrong:
            row["rho_with_last"] = spearman(scores, final)
            row["rho_with_benchmark"] = spearman(scores, np.array(benchmark))
        rows.append(row)
    return rows


if __name__ == "__main__":
    main()
