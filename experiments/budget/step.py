"""What a step of the loop `budget` costs: the choice of the next training by the model.

python -m experiments.budget.step

Processor time of one thread, 1,000 candidates of a space, 50 of them trained, targets made up.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from statistics import median
from typing import Any

import click
import numpy as np

import spaces
from experiments.measured import prints_measured
from experiments.reproduction import markdown
from lpzero.judgement import counters
from lpzero.scores.features import Features, describe_quickly
from lpzero.search.improvement import Candidates, choose, prior_of

SPACES = ("gpt2", "flexibert", "nlp-rnn")
N_CANDIDATES, N_TRAINED = 1000, 50


@click.command()
@click.option("--times", default=11, show_default=True)
@prints_measured
def main(times: int) -> None:
    """Print the milliseconds of a step."""
    rows = [row for name in SPACES for row in _measured(name, times)]
    click.echo(markdown(rows, ("space", "features", "front", "milliseconds", "largest")))


def _measured(name: str, times: int) -> Iterator[dict[str, Any]]:
    space, rng = spaces.get(name), random.Random(0)
    archs = list(dict.fromkeys(space.sample(rng) for _ in range(2 * N_CANDIDATES)))[:N_CANDIDATES]
    described = describe_quickly(space, archs)
    features = Features.of(described)(described)
    counted = [
        np.array([counters.get(of)(space, arch) for arch in archs]) for of in counters.quick(space)
    ]
    prior, costs = prior_of(counted), np.log(counted[0])
    for of in (None, costs):
        candidates = Candidates(features, prior, of)
        spent = []
        for turn in range(times):
            drawn = np.random.default_rng(turn)
            trained = drawn.permutation(len(archs))[:N_TRAINED].tolist()
            targets = prior[trained] + drawn.normal(size=N_TRAINED)
            start = time.process_time()
            choose(candidates, trained, targets, 1)
            spent.append(1000 * (time.process_time() - start))
        yield {
            "space": name,
            "features": features.shape[1],
            "front": "no" if of is None else "yes",
            "milliseconds": round(median(spent), 1),
            "largest": round(max(spent), 1),
        }


if __name__ == "__main__":
    main()
