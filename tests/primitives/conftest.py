"""Random architectures for the tests: blocks of tensors with the properties the statistics have."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from primitives import Matrix, cut
from primitives.statistics import SIZES, STATISTICS
from primitives.tensors import Block, NetworkValues, number

Architecture = list[Block]
Make = Callable[..., Architecture]


def make_architecture(
    seed: int,
    n_blocks: int = 2,
    n_tensors: int = 2,
    rows: int = 4,
    columns: int = 6,
    limit: int = 10_000,
    scale: float | None = None,
) -> Architecture:
    rng = np.random.default_rng(seed)
    scale = float(np.exp(rng.normal())) if scale is None else scale

    def tensor(name: str) -> Matrix:
        values = rng.normal(loc=0.1, size=(rows, columns)) * scale
        if name == "S":
            values = np.exp(values / scale)
            values /= values.sum(axis=1, keepdims=True)
        return cut(values, limit)

    return [{name: [tensor(name) for _ in range(n_tensors)] for name in STATISTICS}
            for _ in range(n_blocks)]  # fmt: skip


def make_network(seed: int, **options: int) -> NetworkValues:
    """Random blocks with sizes, between an embedding and a head that have what ends have."""
    rng = np.random.default_rng(seed)
    depth = int(rng.integers(1, 4))
    positions = []
    for block in make_architecture(seed, n_blocks=depth + 2, **options):
        sizes = {name: number(int(rng.integers(1, 50))) for name in SIZES}
        positions.append({**block, **sizes})
    end = [name for name in positions[0] if (STATISTICS.get(name) or SIZES[name]).at_ends]
    embedding, *blocks, head = positions
    return NetworkValues(
        blocks, {name: embedding[name] for name in end}, {name: head[name] for name in end}
    )


@pytest.fixture(name="make_architecture")
def make_architecture_fixture() -> Make:
    return make_architecture
