"""Figures 1 and 5 of "Training-free NAS for RNNs and transformers": released columns and ours.

    python -m experiments.training_free.recurrent --jobs 2

For each published metric Kendall's tau with minus the loss on Penn Treebank: of the published
column on all released models and on those whose recipe is known, of our proxy on the latter, and
rho between the two. Values of networks are cached, so that a stopped run continues.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np

from experiments.measured import prints_measured
from experiments.reproduction import markdown
from experiments.training_free.draw import bars, scatter
from lpzero import files
from lpzero.arrays import FloatArray
from lpzero.cli.options import cache_option, data_option, jobs_option
from lpzero.judgement.correlation import kendall_many, spearman
from lpzero.parallel import Workers
from lpzero.proxies import Context, Measurements, get
from lpzero.proxies.ranking import prefetch
from lpzero.sketches.store import cache_folder
from spaces.tables import Table, data_root, load, rnn

# A published column, and the proxy that computes it here.
METRICS = {
    "Layer 1 Hidden Covariance": "hidden-covariance-1",
    "Layer 2 Hidden Covariance": "hidden-covariance-2",
    "Layer 3 Hidden Covariance": "hidden-covariance-3",
    "Jacobian Cosine": "jacobian-cosine",
    "Jacobian Covariance": "jacobian-covariance",
    "Activation Distance": "activation-distance",
    "Synaptic Saliency": "synaptic-saliency",
    "Hidden Synaptic Saliency": "hidden-saliency",
    "Large Noise Jacobian": "jacobian-covariance-large-noise",
    "More Noised Jacobian": "jacobian-covariance-more-noised",
    "Large Noise Jacobian Cosine": "jacobian-cosine-large-noise-released",
    "More Noised Jacobian Cosine": "jacobian-cosine-more-noised-released",
}
COLUMNS = ("metric", "tau_all", "tau_joined", "tau_ours", "rho_between", "missing")


@click.command()
@click.option("--metric", "chosen", multiple=True, type=click.Choice(list(METRICS)))
@click.option("--out", type=Path, default=Path("runs/recurrent"), show_default=True)
@jobs_option
@cache_option
@data_option
@prints_measured
def main(**given: Any) -> None:
    """Print the table and draw both figures in OUT."""
    table = load("rnn-ptb", given["data"])
    folder = cache_folder(given["cache"])
    context = Context(folder=folder, workers=Workers(given["jobs"]), label="rnn-ptb")
    measurements = Measurements(context)
    metrics = {name: METRICS[name] for name in given["chosen"] or METRICS}
    prefetch(table, [get(proxy) for proxy in metrics.values()], measurements)
    ours = {
        name: get(proxy).score(table.space, table.archs, measurements)
        for name, proxy in metrics.items()
    }
    root = data_root(given["data"])
    assert root is not None, "the table was loaded from it"
    everything = released(root / rnn.FOLDER / rnn.RESULTS)
    counted = rnn.read_parameters(root / rnn.FOLDER / rnn.PARAMETERS)
    rows = [row(name, everything, table, scores) for name, scores in ours.items()]
    rows.append(parameters(everything, table, counted))
    files.write_json(given["out"] / "metrics.json", rows)
    click.echo(markdown(rows, COLUMNS))
    scatter(ours, table.targets, given["out"] / "figure1-ours.png")
    published = {name: table.extra[name] for name in ours}
    scatter(published, table.targets, given["out"] / "figure1-released.png")
    bars(rows, ("tau_all", "tau_joined", "tau_ours"), given["out"] / "figure5.png")


def released(path: Path) -> dict[str, FloatArray]:
    """The columns of the published results, and the numbers of the models as `model`."""
    found: dict[str, list[float]] = {"model": []}
    for model, values in rnn.read_results(path):
        found["model"].append(float(model))
        for name, value in values.items():
            found.setdefault(name, []).append(value)
    return {name: np.array(values) for name, values in found.items()}


def row(
    name: str, everything: Mapping[str, FloatArray], table: Table, scores: FloatArray
) -> dict[str, Any]:
    """The line of one metric; models without a score of ours are left out of ours."""
    known = np.isfinite(scores)
    return {
        "metric": name,
        "tau_all": tau(everything[name], -everything["loss"]),
        "tau_joined": tau(table.extra[name], table.targets),
        "tau_ours": tau(scores[known], table.targets[known]),
        "rho_between": spearman(scores[known], table.extra[name][known]),
        "missing": int((~known).sum()),
    }


def parameters(
    everything: Mapping[str, FloatArray], table: Table, counted: Mapping[str, int]
) -> dict[str, Any]:
    """The line of the number of parameters, published and counted here."""
    given = np.array([counted.get(str(int(model)), np.nan) for model in everything["model"]])
    known = np.isfinite(given)
    ours = np.array([table.space.parameters(arch) for arch in table.archs], dtype=np.float64)
    theirs = np.array([counted.get(model, np.nan) for model in table.ids], dtype=np.float64)
    both = np.isfinite(theirs)
    return {
        "metric": "parameters",
        "tau_all": tau(given[known], -everything["loss"][known]),
        "tau_joined": tau(theirs[both], table.targets[both]),
        "tau_ours": tau(ours, table.targets),
        "rho_between": spearman(ours[both], theirs[both]),
        "missing": int((~both).sum()),
    }


def tau(values: FloatArray, targets: FloatArray) -> float:
    """Kendall's tau-b."""
    return float(kendall_many(values[np.newaxis], targets).values[0])


if __name__ == "__main__":
    main()
