"""Synthetic networks on which a reader of an export checks that it computes the same scores.

`networks` needs only Python and is copied into exported modules. It contains tensors of every kind:
wide and tall, cut and whole, one and several per block.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain

import numpy as np

from primitives import naive
from primitives.changes import on_change
from primitives.expressions import Apply, walk
from primitives.formula import Formula
from primitives.naive import Axis
from primitives.registry import get_unary
from primitives.rejection import Rejected
from primitives.statistics import STATISTICS, get_statistic
from primitives.tensors import Matrix, cut, whole

LIMIT = 40  # elements kept of each tensor
TOLERANCE = 1e-5
_JITTER = 1e-12  # a score that changes with it is rounding noise, which cannot be reproduced
_STABLE = 1e-7
_FEW, _MANY = 2, 8  # perturbations, for formulas that cannot and that can jump

Rows = list[list[float]]


def networks() -> list[list[dict[str, list[Rows]]]]:
    """Three networks of one to three blocks: network[block][statistic][tensor][row][column]."""
    weights = [(6, 8), (8, 6), (4, 9), (5, 10)]
    state = 20240501

    def tensor(shape: tuple[int, int], low: float, high: float) -> list[list[float]]:
        nonlocal state
        rows = []
        for _ in range(shape[0]):
            row = []
            for _ in range(shape[1]):
                state = (state * 1103515245 + 12345) % 2**31
                row.append(low + (high - low) * state / 2**31)
            rows.append(row)
        return rows

    def block(n_weights: int) -> dict[str, list[list[list[float]]]]:
        return {
            "A": [tensor((10, 12), -0.2, 1.5)],
            "J": [tensor((10, 8), -0.3, 0.4)],
            "G": [tensor(shape, -0.5, 0.6) for shape in weights[:n_weights]],
            "H": [tensor((10, 8), -1.5, 1.8) for _ in range(3)],
            "W": [tensor(shape, -0.9, 0.8) for shape in weights[:n_weights]],
            "S": [tensor((12, 6), 0.01, 0.6)],
        }

    return [[block(2 + (n + i) % 3) for i in range(n)] for n in (1, 2, 3)]


_DRAWN = tuple(networks()[0][0])


def drawn_as(name: str) -> str:
    """The statistic of `networks` whose tensors stand for this statistic: itself if it is there.

    Else one that it is aligned with, or one with the same range.
    """
    own = get_statistic(name)
    aligned = (other for other in _DRAWN if get_statistic(other).group == own.group)
    alike = (other for other in _DRAWN if get_statistic(other).range == own.range)
    return name if name in _DRAWN else next(chain(aligned, alike), "H")


@lru_cache(maxsize=256)
def scores(
    formula: Formula, softmax_axis: Axis = "first", limit: int | None = LIMIT
) -> tuple[float | None, ...]:
    """The formula's score on each network; None where it has none, or only rounding noise."""
    n = _MANY if _can_jump(formula) else _FEW
    found = [
        [naive.score(formula, network, softmax_axis) for network in blocks(limit, perturbation)]
        for perturbation in range(n)
    ]
    return tuple(_stable(values) for values in zip(*found, strict=True))


def _can_jump(formula: Formula) -> bool:
    """Whether the sign of a rounding error could decide the score: 1/x, log x jump at zero."""
    unaries = [node for node in walk(formula.expression) if isinstance(node, Apply)]
    return any(get_unary(node.operation).traits.jumps_at_zero for node in unaries)


def _stable(values: Sequence[float | Rejected]) -> float | None:
    first, *others = values
    if isinstance(first, Rejected):
        return None
    is_stable = all(not isinstance(o, Rejected) and _close(first, o, _STABLE) for o in others)
    return first if is_stable else None


@lru_cache(maxsize=2 * _MANY)
def blocks(limit: int | None, perturbation: int = 0) -> list[list[naive.Block]]:
    """The networks for the reference evaluation, cut or whole; 0 perturbs nothing."""

    def matrix(rows: Rows) -> Matrix:
        values = np.array(rows, dtype=np.float32).astype(
            np.float64
        )  # the precision of extracted statistics
        steps = np.arange(values.size).reshape(values.shape) * (2 * perturbation + 1) % 7 - 3
        perturbed = values * (1 + _JITTER * steps) if perturbation else values
        return whole(perturbed) if limit is None else cut(perturbed, limit)

    sources = {name: drawn_as(name) for name in STATISTICS}
    return [
        [
            {name: [matrix(rows) for rows in block[drawn]] for name, drawn in sources.items()}
            for block in network
        ]
        for network in networks()
    ]


for _cache in (scores, blocks):
    on_change(_cache.cache_clear)


def agree(mine: Sequence[float | None], theirs: Sequence[float | None]) -> bool:
    """Whether the scores are equal wherever both have one."""
    return len(mine) == len(theirs) and all(
        a is None or b is None or _close(a, b, TOLERANCE) for a, b in zip(mine, theirs, strict=True)
    )


def _close(a: float, b: float, tolerance: float) -> bool:
    return math.isclose(a, b, rel_tol=tolerance, abs_tol=1e-12)
