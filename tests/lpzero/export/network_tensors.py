"""The tensors of one random network in three forms: as in a model, for the reference, as a sketch.

And a formula exported in any form, to be scored on them.
"""

from __future__ import annotations

import random
import types
from functools import cache, lru_cache
from typing import Any

import numpy as np
import torch

import spaces
from lpzero.export import Exported, Provenance, Selection, export
from lpzero.scores.branch_table import branch_table
from lpzero.scores.values import Values
from lpzero.sketches.builder import build_sketch
from lpzero.sketches.sketch import Sketch, SketchOptions
from primitives.formula import Formula
from primitives.naive import Block
from primitives.parser import parse
from primitives.statistics import STATISTICS
from primitives.tensors import cut, whole

LIMIT = 40
_WEIGHTS = [(6, 8), (8, 6), (9, 9), (4, 9)]
_SHAPES: dict[str, list[tuple[int, ...]]] = {
    "A": [(2, 5, 12)],
    "J": [(2, 5, 8)],
    "G": list(_WEIGHTS),
    "H": [(2, 5, 8)] * 3,
    "W": list(_WEIGHTS),
    "S": [(2, 2, 3, 6)],
}
_SCALES = {"W": 0.3, "G": 0.05, "J": 0.01}


def exported(formula: str | Formula, **options: Any) -> Exported:
    """The formula as a record."""
    formula = parse(formula) if isinstance(formula, str) else formula
    return Exported("drawn", formula, Provenance("formula"), SketchOptions(**options))


def written(one: Exported, form: str) -> str:
    """The text of the record in that form."""
    return export(Selection([one], []), form)


def module_of(one: Exported) -> Any:
    """The standalone module, as whoever imports the file would have it."""
    made = types.ModuleType("exported")
    exec(compile(written(one, "python"), "exported.py", "exec"), made.__dict__)  # noqa: S102
    return made


@lru_cache(maxsize=1)
def tensors() -> list[dict[str, list[torch.Tensor]]]:
    """Two blocks of whole tensors, most of them with more elements than the limit."""
    generator = torch.Generator().manual_seed(5)

    def draw(name: str, shape: tuple[int, ...]) -> torch.Tensor:
        x = 0.02 + _SCALES.get(name, 1.0) * torch.randn(shape, generator=generator)
        return x.softmax(-1) if name == "S" else x

    return [
        {name: [draw(name, shape) for shape in _SHAPES[name]] for name in STATISTICS}
        for _ in range(2)
    ]


@lru_cache(maxsize=2)
def blocks(limit: int | None) -> list[Block]:
    """The same for the reference evaluation, whole or cut."""

    def matrix(x: torch.Tensor) -> Any:
        flat = x.reshape(-1, x.shape[-1]).numpy()
        return whole(flat) if limit is None else cut(flat, limit)

    return [{name: [matrix(x) for x in block[name]] for name in block} for block in tensors()]


@lru_cache(maxsize=1)
def engine() -> Values:
    """The engine on the network's sketch."""
    shapes: list[Any] = [
        {name: [[m.rows, m.kept, m.true_columns] for m in block[name]] for name in STATISTICS}
        for block in blocks(LIMIT)
    ]
    numbers = [m.values.ravel() for b in blocks(LIMIT) for name in STATISTICS for m in b[name]]
    sketch = Sketch({"blocks": shapes}, np.concatenate(numbers).astype(np.float32))
    return Values(branch_table([sketch]))


@cache
def sketched(name: str, loss: str = "auto") -> tuple[Any, Any, SketchOptions, Values]:
    """The space, a small architecture of it, and the values of its sketch with these options."""
    space = spaces.get(name)
    arch = min((space.sample(random.Random(i)) for i in range(20)), key=space.parameters)
    options = SketchOptions(limit=500, loss=loss, batch_seed=2)
    return space, arch, options, Values(branch_table([build_sketch(space, arch, options)]))
