"""Sketches of random numbers, for the tests of everything that starts from a sketch."""

from __future__ import annotations

from typing import Any

import numpy as np

from lpzero.sketches.sketch import Sketch
from primitives import naive
from primitives.statistics import STATISTICS

# (rows, kept, true) of a block's tensors: square and not, whole and cut.
_WEIGHTS = [(8, 8, 8), (8, 4, 8), (12, 3, 8), (6, 5, 10), (8, 8, 8)]
_SHAPES = {"A": [(10, 6, 16)], "J": [(10, 8, 8)], "H": [(10, 4, 8)] * 3, "S": [(16, 4, 8)]}


def sketch(seed: int, n_blocks: int = 2) -> Sketch:
    """A sketch of random numbers; blocks differ in their number of weights."""
    rng = np.random.default_rng(seed)
    blocks: list[dict[str, Any]] = []
    numbers = []
    for block in range(n_blocks):
        weights = _WEIGHTS[: 3 + (seed + block) % 3]
        shapes = {**_SHAPES, "W": weights, "G": weights}
        blocks.append({name: [list(shape) for shape in shapes[name]] for name in STATISTICS})
        for name in STATISTICS:
            for rows, kept, _ in shapes[name]:
                scale = {"W": 0.02, "G": 1e-3, "J": 1e-5}.get(name, 1.0) * (1 + seed % 5)
                drawn = rng.normal(0.1 * scale, scale, (rows, kept))
                numbers.append(np.abs(drawn / 50) if name == "S" else drawn)
    flat = np.concatenate([part.ravel() for part in numbers]).astype(np.float32)
    return Sketch({"blocks": blocks}, flat)


def blocks_of(one: Sketch) -> list[naive.Block]:
    """The sketch as the reference evaluation wants it."""
    return [
        {name: one.matrices(block, name) for name in STATISTICS} for block in range(one.n_blocks)
    ]
