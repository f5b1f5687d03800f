"""Sketches of random numbers, for the tests of everything that starts from a sketch."""

from __future__ import annotations

from typing import Any

import numpy as np

from lpzero.sketches.sketch import Sketch, end_statistics
from primitives import naive
from primitives.statistics import STATISTICS
from primitives.tensors import NetworkValues, number

# (rows, kept, true) of a block's tensors: square and not, whole and cut.
_WEIGHTS = [(8, 8, 8), (8, 4, 8), (12, 3, 8), (6, 5, 10), (8, 8, 8)]
_SHAPES = {"A": [(10, 6, 16)], "J": [(10, 8, 8)], "H": [(10, 4, 8)] * 3, "S": [(16, 4, 8)]}
_END_WEIGHTS = {"embedding": [(8, 5, 40), (8, 2, 2)], "head": [(8, 5, 40)]}
_STATES = {"A": [(10, 4, 8)], "J": [(10, 4, 8)]}
_SCALES = {"W": 0.02, "G": 1e-3, "J": 1e-5}


def sketch(seed: int, n_blocks: int = 2, with_ends: bool = True) -> Sketch:
    """A sketch of random numbers; blocks differ in their number of weights.

    Its ends and sizes depend on the seed too, and leave the numbers of the blocks as they are.
    """
    rng = np.random.default_rng(seed)
    blocks: list[dict[str, Any]] = []
    numbers = []
    for block in range(n_blocks):
        weights = _WEIGHTS[: 3 + (seed + block) % 3]
        shapes = {**_SHAPES, "W": weights, "G": weights}
        blocks.append({name: [list(shape) for shape in shapes[name]] for name in STATISTICS})
        for name in STATISTICS:
            for rows, kept, _ in shapes[name]:
                scale = _SCALES.get(name, 1.0) * (1 + seed % 5)
                drawn = rng.normal(0.1 * scale, scale, (rows, kept))
                numbers.append(np.abs(drawn / 50) if name == "S" else drawn)
    header: dict[str, Any] = {"blocks": blocks}
    if with_ends:
        ends, drawn_at_ends = _ends(seed)
        header |= {"ends": ends, "sizes": _sizes(seed, n_blocks)}
        numbers += drawn_at_ends
    flat = np.concatenate([part.ravel() for part in numbers]).astype(np.float32)
    return Sketch(header, flat)


def _ends(seed: int) -> tuple[dict[str, Any], list[Any]]:
    """The shapes at both ends, and their numbers from a stream of their own."""
    rng = np.random.default_rng([seed, 1])
    ends: dict[str, Any] = {}
    numbers = []
    for end, weights in _END_WEIGHTS.items():
        shapes = {**_STATES, "W": weights, "G": weights}
        ends[end] = {name: [list(shape) for shape in shapes[name]] for name in end_statistics()}
        for name in end_statistics():
            scale = _SCALES.get(name, 1.0) * (1 + seed % 5)
            numbers += [rng.normal(0.1 * scale, scale, shape[:2]) for shape in shapes[name]]
    return ends, numbers


def _sizes(seed: int, n_blocks: int) -> dict[str, Any]:
    rng = np.random.default_rng([seed, 2])
    blocks = [
        {"params": int(params), "width": 8, "ffn": int(ffn), "heads": int(heads)}
        for params, ffn, heads in rng.integers([500, 16, 1], [5000, 64, 9], (n_blocks, 3))
    ]
    embedding, head = rng.integers(100, 1000, 2).tolist()
    ends = {
        "embedding": {"params": embedding, "width": 8},
        "head": {"params": head, "width": 8},
    }
    return {"blocks": blocks, "ends": ends}


def blocks_of(one: Sketch) -> list[naive.Block]:
    """The sketch as the reference evaluation wants it."""
    return [
        {name: one.matrices(block, name) for name in STATISTICS} for block in range(one.n_blocks)
    ]


def network_of(one: Sketch) -> NetworkValues:
    """The sketch for the reference evaluation: blocks and ends, with their sizes."""
    sizes = one.sizes or {"blocks": [{} for _ in range(one.n_blocks)], "ends": {}}
    blocks = [
        {**block, **{name: number(value) for name, value in stated.items()}}
        for block, stated in zip(blocks_of(one), sizes["blocks"], strict=True)
    ]
    ends = {
        end: {
            **{name: one.matrices(end, name) for name in end_statistics()},
            **{name: number(value) for name, value in sizes["ends"].get(end, {}).items()},
        }
        for end in one.ends
    }
    return NetworkValues(blocks, **ends)
