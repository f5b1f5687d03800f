"""Features of architectures of any space: what is known of them without a network.

Logarithms of parameters, decoder and attention parameters, flops, depth and width; every numeric
field of the architecture outside its blocks; for every numeric field of the blocks the logarithm of
its mean, minimum and maximum; for every categorical field the share of blocks with each value; the
space's own traits. Shapes: n architectures, F features.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.judgement import counters
from spaces.base import Space

_COUNTERS = ("parameters", "decoder-parameters", "attention-parameters", "flops", "depth")


@dataclass(frozen=True, eq=False)
class Features:
    """The features that vary over the architectures it was made of, standardised over them."""

    names: tuple[str, ...]
    centre: FloatArray
    spread: FloatArray
    lowest: FloatArray
    highest: FloatArray

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, float]]) -> Features:
        """The features of architectures described by these rows."""
        names = sorted({name for row in rows for name in row})
        raw = _matrix(names, rows)
        varies = raw.std(axis=0) > 1e-12
        kept = tuple(name for name, is_kept in zip(names, varies, strict=True) if is_kept)
        raw = raw[:, varies]
        return cls(kept, raw.mean(axis=0), raw.std(axis=0), raw.min(axis=0), raw.max(axis=0))

    def __call__(self, rows: Sequence[Mapping[str, float]]) -> FloatArray:
        """The standardised features (n, F) of architectures described by these rows."""
        return np.asarray((_matrix(self.names, rows) - self.centre) / self.spread)

    def outside(self, row: Mapping[str, float]) -> list[str]:
        """The features in which the architecture is outside the range of those it was made of."""
        [raw] = _matrix(self.names, [row])
        beyond = (raw < self.lowest - 1e-9) | (raw > self.highest + 1e-9)
        return [name for name, is_beyond in zip(self.names, beyond, strict=True) if is_beyond]


def _matrix(names: Sequence[str], rows: Sequence[Mapping[str, float]]) -> FloatArray:
    values = [[row.get(name, 0.0) for name in names] for row in rows]
    return np.array(values, dtype=np.float64).reshape(len(rows), len(names))


def describe(space: Space[Any], archs: Sequence[Any]) -> list[dict[str, float]]:
    """The features of each architecture by name."""
    return [_describe(space, arch) for arch in archs]


def describe_quickly(space: Space[Any], archs: Sequence[Any]) -> list[dict[str, float]]:
    """The features of each architecture for which no network is run; often all of them."""
    if counters.quick(space) == counters.defined(space):
        return describe(space, archs)
    names = [name for name in _COUNTERS if name in counters.quick(space)]
    return [_plain(space, arch, names) | space.traits(arch) for arch in archs]


def _describe(space: Space[Any], arch: Any) -> dict[str, float]:
    features = _plain(space, arch, _COUNTERS)
    features["width"] = math.log(space.width(arch))
    blocks = [dataclasses.asdict(block) for block in space.blocks(arch)]
    for name in blocks[0] if blocks else ():
        values = [block[name] for block in blocks]
        if isinstance(values[0], str):
            for value, n in Counter(values).items():
                features[f"share of {name} {value}"] = n / len(blocks)
        elif isinstance(values[0], (int, float)):
            features[f"mean {name}"] = _log(sum(values) / len(values))
            features[f"least {name}"] = _log(min(values))
            features[f"largest {name}"] = _log(max(values))
    return features | space.traits(arch)


def _plain(space: Space[Any], arch: Any, names: Sequence[str]) -> dict[str, float]:
    """The counters of these names, and the numbers outside the blocks."""
    features = {}
    for name in names:
        # An architecture may have no attention.
        features[name] = math.log(max(1.0, counters.get(name)(space, arch)))
    for name, value in space.to_json(arch).items():
        if isinstance(value, (int, float)):
            features[f"field {name}"] = float(value)
    return features


def _log(value: float) -> float:
    """The logarithm of 1 plus the magnitude, with the sign of the value."""
    return math.copysign(math.log1p(abs(value)), value)
