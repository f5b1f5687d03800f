"""Numeric features of an architecture of any space, for surrogates and for distances.

Logarithms of parameters, decoder and attention parameters, flops, depth and width; every numeric
field of the architecture outside its blocks; for every numeric field of the blocks the logarithm of
its mean, minimum and maximum; for every categorical field the share of blocks with each value; the
space's own traits.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.judgement import counters
from spaces.base import Space


class Features:
    """The features that vary over the given architectures, standardised over them."""

    def __init__(self, space: Space[Any], archs: Sequence[Any]) -> None:
        self.space = space
        rows = [describe(space, arch) for arch in archs]
        self.names = sorted({name for row in rows for name in row})
        raw = self._matrix(rows)
        varies = raw.std(axis=0) > 1e-12
        self.names = [name for name, keep in zip(self.names, varies, strict=True) if keep]
        self._centre, self._spread = raw[:, varies].mean(axis=0), raw[:, varies].std(axis=0)
        self._lowest, self._highest = raw[:, varies].min(axis=0), raw[:, varies].max(axis=0)

    def __call__(self, archs: Sequence[Any]) -> FloatArray:
        """The standardised features (n, F)."""
        raw = self._matrix([describe(self.space, arch) for arch in archs])
        scaled: FloatArray = (raw - self._centre) / self._spread
        return scaled

    def outside(self, arch: Any) -> list[str]:
        """The features in which the architecture is outside the range of the given ones."""
        raw = self._matrix([describe(self.space, arch)])[0]
        beyond = (raw < self._lowest - 1e-9) | (raw > self._highest + 1e-9)
        return [name for name, is_beyond in zip(self.names, beyond, strict=True) if is_beyond]

    def _matrix(self, rows: Sequence[dict[str, float]]) -> FloatArray:
        return np.array([[row.get(name, 0.0) for name in self.names] for row in rows])


def describe(space: Space[Any], arch: Any) -> dict[str, float]:
    """The raw features by name."""
    found = {}
    for name in ("parameters", "decoder-parameters", "attention-parameters", "flops", "depth"):
        found[name] = math.log(max(1.0, counters.get(name)(space, arch)))  # attention may be none
    found["width"] = math.log(space.width(arch))
    for name, value in space.to_json(arch).items():
        if isinstance(value, (int, float)):
            found[f"field {name}"] = float(value)
    blocks = [dataclasses.asdict(block) for block in space.blocks(arch)]
    for name in blocks[0]:
        values = [block[name] for block in blocks]
        if isinstance(values[0], str):
            for value, n in Counter(values).items():
                found[f"share of {name} {value}"] = n / len(blocks)
        elif isinstance(values[0], (int, float)):
            found[f"mean {name}"] = math.log1p(sum(values) / len(values))
            found[f"least {name}"] = math.log1p(min(values))
            found[f"largest {name}"] = math.log1p(max(values))
    return found | space.traits(arch)
