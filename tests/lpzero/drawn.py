"""Drawn sketches and formulas for the tests of everything from the sketch onward."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from lpzero.sketches.sketch import Sketch
from primitives import naive
from primitives.expressions import Apply, Combine, Expression, Leaf
from primitives.formula import REDUCTIONS, Formula
from primitives.registry import BINARIES, UNARIES
from primitives.statistics import STATISTICS

# (rows, kept, true) of a block's tensors: square and not, whole and cut.
_WEIGHTS = [(8, 8, 8), (8, 4, 8), (12, 3, 8), (6, 5, 10), (8, 8, 8)]
_SHAPES = {"A": [(10, 6, 16)], "J": [(10, 8, 8)], "H": [(10, 4, 8)] * 3, "S": [(16, 4, 8)]}


def sketch(seed: int, n_blocks: int = 2) -> Sketch:
    """A sketch of drawn numbers; blocks differ in their number of weights."""
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


def chain(rng: random.Random, length: int) -> list[str]:
    """Unary operations in the order applied."""
    return [rng.choice(list(UNARIES)) for _ in range(length)]


def tree(rng: random.Random, depth: int) -> Expression:
    """An expression of at most that depth, without dead branches."""
    if depth == 0 or rng.random() < 0.15:
        return Leaf(rng.choice(list(STATISTICS)))
    if rng.random() < 0.6:
        alive = [name for name in UNARIES if name != "disconnect"]
        return Apply(rng.choice(alive), tree(rng, depth - 1))
    return Combine(rng.choice(list(BINARIES)), tree(rng, depth - 1), tree(rng, depth - 1))


def formula(rng: random.Random, depth: int) -> Formula:
    """A formula over a drawn tree."""
    return Formula(tree(rng, depth), rng.choice(REDUCTIONS), rng.choice((1, -1)))
