"""A small space, landscapes with a known optimum on it, and environments that need no network."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.proxies import Measurements, Proxy
from lpzero.proxies.base import SizeProxy
from lpzero.search.constraints import Constraints
from lpzero.search.environment import Environment, Sampler
from lpzero.search.ledger import Ledger
from lpzero.search.scorer import Scorer
from spaces.base import Space
from spaces.flexibert import FlexiBertSpace

SPACE = FlexiBertSpace(
    name="planted",
    hidden=(16, 32, 48),
    n_layers=(2, 3),
    operations=("sdp", "wma"),
    heads=(2, 4),
    ffn=(24, 48),
    stacks=(1, 2),
    vocabulary=40,
    embedding=16,
    batch_shape=(2, 8),
)


def value_of_block(block: Any) -> float:
    """Best with WMA, two heads, a wide and single feed-forward."""
    return (block.operation == "wma") + (block.heads == 2) + (block.ffn == 48) + (block.stacks == 1)


def height(space: Space[Any], arch: Any) -> float:
    """A landscape with one optimum: depth 3, hidden 32, the best block throughout."""
    return sum(map(value_of_block, space.blocks(arch))) + 3.0 * (arch.hidden == 32)


OPTIMUM = 15.0


@dataclass(frozen=True)
class BlockProxy(Proxy):
    """The planted values block by block; the width counts for nothing."""

    name: str = "planted"
    definition: str = "planted"
    has_blocks: bool = True
    value: Callable[[Any], float] = value_of_block

    def score(
        self, space: Space[Any], archs: Sequence[Any], measurements: Measurements
    ) -> FloatArray:
        return np.array([values.sum() for values in self.block_scores(space, archs, measurements)])

    def block_scores(
        self, space: Space[Any], archs: Sequence[Any], measurements: Measurements
    ) -> list[FloatArray]:
        return [np.array([float(self.value(b)) for b in space.blocks(a)]) for a in archs]


def proxy(function: Callable[[Space[Any], Any], float] = height) -> SizeProxy:
    return SizeProxy("planted", function, definition="planted")


class Landscape:
    """An evaluator that counts what it was asked."""

    name, target, is_free, pool = "landscape", "height", True, None

    def __init__(self, function: Callable[[Space[Any], Any], float] = height) -> None:
        self.function = function
        self.asked: list[Any] = []

    def describe(self) -> dict[str, Any]:
        return {}

    def evaluate(self, archs: Sequence[Any]) -> Iterable[float]:
        self.asked += archs
        return [self.function(SPACE, arch) for arch in archs]


def environment(
    guide: Proxy,
    evaluator: Any = None,
    seed: int = 0,
    constraints: Constraints | None = None,
    pool: Sequence[Any] | None = None,
    space: Space[Any] = SPACE,
) -> Environment:
    ledger = Ledger(space)
    sampler = Sampler(space, constraints or Constraints(), lambda arch: 0.0, pool)
    scorer = Scorer(guide, space, Measurements(), ledger)
    return Environment(sampler, scorer, evaluator, ledger, random.Random(seed))
