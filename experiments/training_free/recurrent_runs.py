"""Figures 7 and 9 of "Training-free NAS for RNNs and transformers": other weights, other batches.

    python -m experiments.training_free.recurrent_runs --runs 10 --jobs 2

Ten cells, one of each tenth of the losses, with several seeds of the weights and with several
batches: the mean rho between two runs, of the released values and of ours. The released files
hold ten other models of the benchmark.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from experiments.measured import prints_measured
from experiments.reproduction import markdown, thin
from experiments.training_free.draw import strips
from experiments.training_free.figures import ablation, agreement
from experiments.training_free.recurrent import METRICS
from lpzero import files
from lpzero.cli.options import cache_option, data_option, jobs_option
from lpzero.parallel import Workers
from lpzero.proxies import Context, Measurements, get
from lpzero.sketches.store import cache_folder
from spaces.tables import data_root, load, rnn

# A figure: what varies, and the released file.
FIGURES = {
    "figure7": ("seed", "RNN_initialization_ablation.csv"),
    "figure9": ("batch_seed", "RNN_batch_ablation.csv"),
}
N_ARCHS = 10
RENAMED = {"Hidden Synflow Saliency": "Hidden Synaptic Saliency"}  # in one of the files


@click.command()
@click.option("--runs", default=10, show_default=True, help="Seeds, and batches, of ours.")
@click.option("--metric", "chosen", multiple=True, type=click.Choice(list(METRICS)))
@click.option("--out", type=Path, default=Path("runs/recurrent"), show_default=True)
@jobs_option
@cache_option
@data_option
@prints_measured
def main(**given: Any) -> None:
    """Print a table for each figure and draw it in OUT."""
    table = thin(load("rnn-ptb", given["data"]), N_ARCHS)
    root = data_root(given["data"])
    assert root is not None, "the table was loaded from it"
    folder = cache_folder(given["cache"])
    metrics = {name: METRICS[name] for name in given["chosen"] or METRICS}
    workers = Workers(given["jobs"])
    for figure, (kind, file) in FIGURES.items():
        runs = [
            Measurements(Context(**{kind: i}, folder=folder, workers=workers))
            for i in range(given["runs"])
        ]
        ours = ablation(table, [get(proxy) for proxy in metrics.values()], runs)
        theirs = released(root / rnn.FOLDER / file)
        rows = [
            {"metric": name, "released": agreement(theirs[name]), "ours": agreement(ours[proxy])}
            for name, proxy in metrics.items()
        ]
        files.write_json(given["out"] / f"{figure}.json", rows)
        strips(ours, given["out"] / f"{figure}-ours.png")
        strips({n: theirs[n] for n in metrics}, given["out"] / f"{figure}-released.png")
        click.echo(f"{figure}: rho between two runs\n\n")
        click.echo(markdown(rows, ("metric", "released", "ours")))


def released(path: Path) -> dict[str, list[list[float]]]:
    """Of each metric the values of each run, models in the order of their losses."""
    by_model: dict[str, list[dict[str, float]]] = {}
    for model, values in rnn.read_results(path):
        by_model.setdefault(model, []).append(values)
    models = sorted(by_model.values(), key=lambda of_model: -of_model[0]["loss"])
    n_runs = min(map(len, models))
    names = [name for name in models[0][0] if RENAMED.get(name, name) in METRICS]
    return {
        RENAMED.get(name, name): [
            np.array([of_model[run][name] for of_model in models]).tolist() for run in range(n_runs)
        ]
        for name in names
    }


if __name__ == "__main__":
    main()
