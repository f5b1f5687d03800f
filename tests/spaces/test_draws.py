"""A seed keeps its meaning: what it draws, mutates and crosses in every space is recorded.

The digests in `draws.json` were recorded before spaces shared one way of variation. A changed
digest means that seeds give other architectures, so that published commands no longer repeat.
"""

from __future__ import annotations

import hashlib
import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import spaces
from spaces.base import Space
from tests.spaces.own.small_space import SPACE as OWN

RECORDED = json.loads(Path(__file__).with_name("draws.json").read_text())
SPACES = {name: spaces.get(name) for name in spaces.names()} | {"own": OWN}


def draws(space: Space[Any]) -> dict[str, str]:
    """A digest of what a few seeds give, by the kind of draw."""
    drawn = [space.sample(random.Random(seed)) for seed in range(12)]
    indices = [seed % space.depth(arch) for seed, arch in enumerate(drawn)]
    found = {
        "sample": drawn,
        "mutate": [
            space.mutate(arch, probability, random.Random(seed))
            for seed, arch in enumerate(drawn)
            for probability in (0.2, 0.5, 1.0)
        ],
        "crossover": [
            space.crossover(*pair, random.Random(seed)) for seed, pair in enumerate(pairwise(drawn))
        ],
        "redraw_block": [
            space.redraw_block(arch, index, random.Random(index))
            for index, arch in zip(indices, drawn, strict=True)
        ],
        "redraw_shape": [
            space.redraw_shape(arch, random.Random(seed)) for seed, arch in enumerate(drawn)
        ],
    }
    return {kind: _digest([space.to_json(arch) for arch in archs]) for kind, archs in found.items()}


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


@pytest.mark.parametrize("name", RECORDED)
def test_seeds_give_the_recorded_architectures(name: str) -> None:
    assert draws(SPACES[name]) == RECORDED[name]
