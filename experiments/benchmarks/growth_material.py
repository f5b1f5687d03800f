"""A table of many architectures with made-up targets, and linked sketches of all of them.

Some networks are run; every other architecture gets the numbers of one of them, scaled by a factor
of its own so that no two score alike, under its own name and sizes. Every file is what `lpzero
stats` would have written, but for the numbers.
"""

from __future__ import annotations

import csv
import math
import random
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path

import numpy as np

from experiments.benchmarks.growth_space import SPACE
from lpzero.sketches.builder import build_sketch
from lpzero.sketches.sketch import Sketch, SketchOptions, address_of, encode, identity
from lpzero.sketches.store import Store
from spaces.gpt2 import Gpt2Arch

RUN = 48  # networks that are really run, half of each depth
SEEDS = (0, 1)  # of a run's networks, and of those that show whether scores repeat
TARGET = "target"
_NOISE, _SPREAD = 0.2, 0.3  # standard deviations of the targets' noise and of the factors' logs


def architectures(n: int) -> list[Gpt2Arch]:
    """The first n different architectures of a stream that depends on nothing else."""
    rng = random.Random(0)
    found: dict[Gpt2Arch, None] = {}
    while len(found) < n:
        found.setdefault(SPACE.sample(rng))
    return list(found)


def write_table(path: Path, archs: Sequence[Gpt2Arch]) -> None:
    """A CSV file of the architectures: the logarithm of the parameters plus noise as target."""
    noise = np.random.Generator(np.random.Philox(0)).normal(0, _NOISE, len(archs))
    fields = [SPACE.to_json(arch) for arch in archs]
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow([*fields[0], TARGET])
        for arch, values, error in zip(archs, fields, noise, strict=True):
            rows.writerow([*values.values(), math.log(SPACE.parameters(arch)) + error])


def link_sketches(store: Store, archs: Sequence[Gpt2Arch]) -> None:
    """Write the sketches of all architectures, with both seeds."""
    for seed in SEEDS:
        options = SketchOptions(seed=seed, batch_seed=seed)
        networks = {
            n: cycle(
                [
                    build_sketch(SPACE, arch, options)
                    for arch in of_depth[: RUN // len(SPACE.n_layers)]
                ]
            )
            for n in SPACE.n_layers
            if (of_depth := [arch for arch in archs if len(arch.d_inner) == n])
        }
        factors = np.exp(
            np.random.Generator(np.random.Philox(seed)).normal(0, _SPREAD, len(archs))
        ).astype(np.float32)
        for arch, factor in zip(archs, factors, strict=True):
            like = next(networks[len(arch.d_inner)])
            header = {
                **like.header,
                **identity(SPACE, arch, options),
                "sizes": {"blocks": SPACE.block_sizes(arch), "ends": SPACE.end_sizes(arch)},
            }
            address = address_of(header)
            assert address is not None, "an identity is complete"
            store.write(SPACE.name, address, encode(Sketch(header, like.numbers * factor)))
