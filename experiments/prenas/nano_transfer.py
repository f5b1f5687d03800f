"""Transfer at nano scale (PreNAS, Table 5): the lower-case letters, which no supernet has seen.

    python -m experiments.prenas.nano_transfer --out runs/one_shot

Networks keep their weights; a ridge regression on the mean of their patches learns the 26 letters
in the training fonts and is measured in the test fonts. Untrained networks stand beside.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np
import torch

import spaces
from experiments.measured import prints_measured
from experiments.prenas.nano_trainings import SPACE, folder_of
from experiments.student import interval
from lpzero.cli.options import format_option
from lpzero.cli.output import print_rows
from lpzero.statistics.isolation import single_thread
from lpzero.supernet.selection import usual_preferred
from lpzero.supernet.trained import open_supernet
from spaces.training.characters import SMALL_LETTERS
from spaces.training.shared_tasks import Characters

N_TRAIN, N_TEST, RIDGE = 3000, 1500, 1.0


@click.command()
@click.option("--out", type=click.Path(path_type=Path), required=True)
@click.option("--seeds", default=3, show_default=True)
@format_option
@prints_measured
def main(out: Path, seeds: int, form: str) -> None:
    """Print the accuracies on new classes in held-out fonts."""
    space = spaces.get(SPACE)
    task = Characters(space.image, SMALL_LETTERS)  # type: ignore[attr-defined]
    archs = usual_preferred(space)[::3]
    kinds = ("untrained", "redundant", "balanced")
    found: dict[str, list[float]] = {kind: [] for kind in kinds}
    with single_thread():
        for seed in range(seeds):
            for kind in kinds:
                supernet = (
                    space.supernet(seed)
                    if kind == "untrained"
                    else open_supernet(folder_of(out, kind, seed)).supernet
                )
                values = [_probe(supernet.subnet(arch), task, seed) for arch in archs]
                found[kind].append(float(np.mean(values)))
    rows = []
    for kind, by_seed in found.items():
        difference = np.array(by_seed) - np.array(found["redundant"])
        shown = "-" if kind == "redundant" else interval(difference)
        rows.append({"supernet": kind, "accuracy": np.mean(by_seed), "minus redundant": shown})
    print_rows(rows, form, f"26 new classes (chance 0.038), {len(archs)} networks, {seeds} seeds")


def _probe(model: Any, task: Characters, seed: int) -> float:
    train, test = task.batch(seed, 0, N_TRAIN), task.held_out("test", N_TEST)
    features = [_features(model, batch.inputs) for batch in (train, test)]
    assert train.labels is not None
    assert test.labels is not None
    targets = torch.nn.functional.one_hot(train.labels, task.n_classes).double()
    inside = features[0].T @ features[0] + RIDGE * torch.eye(features[0].shape[1])
    weights = torch.linalg.solve(inside, features[0].T @ targets)
    return float(((features[1] @ weights).argmax(1) == test.labels).double().mean())


def _features(model: Any, images: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        hidden = torch.cat([model(part)[:, 1:].mean(1) for part in images.split(250)])
    ones = torch.ones(len(hidden), 1)
    return torch.cat([hidden, ones], dim=1).double()


if __name__ == "__main__":
    main()
