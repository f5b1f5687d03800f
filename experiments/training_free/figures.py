"""Figures 2, 8, 10 and 11 of "Training-free NAS for RNNs and transformers" on FlexiBERT.

    python -m experiments.training_free.figures --jobs 2

Figures 2 and 11: each proxy against the GLUE score, normalised by the number of features and not.
Figures 8 and 10: the proxies of ten architectures, one of each tenth of the scores, with ten seeds
of the weights and with ten batches. After an interruption the same command continues.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import click
import numpy as np

from experiments.measured import prints_measured
from experiments.reproduction import markdown, thin
from experiments.training_free.draw import scatter, strips
from lpzero.cli.options import data_option, jobs_option
from lpzero.judgement.correlation import spearman
from lpzero.parallel import Workers
from lpzero.proxies import Context, Measurements, Proxy, get
from lpzero.proxies.ranking import Ranking, prefetch, rank
from spaces.tables import Table, load

FEATURES = (
    "activation-distance",
    "synaptic-saliency",
    "synaptic-diversity",
    "head-importance",
    "attention-confidence",
    "softmax-confidence",
)
WHOLE = (
    "jacobian-covariance",
    "jacobian-cosine",
    "jacobian-cosine-large-noise",
    "jacobian-cosine-more-noised",
    "parameters",
)
FIGURES = {
    "figure2": (*(f"{name}-normalised" for name in FEATURES), *WHOLE),
    "figure11": (*FEATURES, *WHOLE),
}
ABLATIONS = {"figure8": "seed", "figure10": "batch_seed"}
N_ARCHS = N_SEEDS = 10


@click.command()
@click.option("--archs", type=int, help="Use only this many architectures, for a quick run.")
@click.option("--space", default="flexibert-upstream", show_default=True)
@click.option("--out", type=Path, default=Path("runs/training_free"), show_default=True)
@jobs_option
@data_option
@prints_measured
def main(**given: Any) -> None:
    """Print the figures' numbers and write both to OUT."""
    out = given["out"]
    out.mkdir(parents=True, exist_ok=True)
    whole = load("flexibert", given["data"], given["space"])
    table, workers = thin(whole, given["archs"]), Workers(given["jobs"])
    measurements = Measurements(Context(workers=workers, label="figures 2 and 11"))
    for name, chosen in FIGURES.items():
        proxies = [get(one) for one in chosen]
        rows = rank(table, proxies, Ranking(measurements.context))
        (out / f"{name}.json").write_text(json.dumps(rows, indent=1) + "\n")
        print(f"{name}\n\n{markdown(rows, ('proxy', 'n', 'tau', 'rho', 'rho_given_params'))}")
        scores = {p.name: p.score(table.space, table.archs, measurements) for p in proxies}
        scatter(scores, table.targets, out / f"{name}.png")
    few = thin(whole, N_ARCHS)
    for name, kind in ABLATIONS.items():
        runs = [Measurements(Context(**{kind: i}, workers=workers)) for i in range(N_SEEDS)]
        found = ablation(few, [get(one) for one in FIGURES["figure2"][:-1]], runs)
        (out / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n")
        strips(found, out / f"{name}.png")
        rows = [{"proxy": proxy, "agreement": agreement(values)} for proxy, values in found.items()]
        print(f"{name}: rho between two runs, mean\n\n{markdown(rows, ('proxy', 'agreement'))}")


def agreement(runs: list[list[float]]) -> float:
    """The mean rho over all pairs of runs."""
    pairs = itertools.combinations(np.array(runs), 2)
    return float(np.mean([spearman(first, second) for first, second in pairs]))


def ablation(
    few: Table, proxies: list[Proxy], runs: list[Measurements]
) -> dict[str, list[list[float]]]:
    """Of each proxy the scores of each run, architectures in the order of their targets."""
    order = np.argsort(few.targets)
    for run in runs:
        prefetch(few, proxies, run)
    return {
        proxy.name: [proxy.score(few.space, few.archs, run)[order].tolist() for run in runs]
        for proxy in proxies
    }


if __name__ == "__main__":
    main()
