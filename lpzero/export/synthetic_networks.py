"""Synthetic networks on which a reader of an export checks that it computes the same scores.

`networks`, `network_ends` and `network_sizes` need only Python and are copied into exported
modules. Their tensors are of every kind: wide and tall, cut and whole, one and several per block.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import get_args

import numpy as np

from primitives import naive
from primitives.errors import Rejected
from primitives.expressions import Apply, walk
from primitives.formula import Formula, operations
from primitives.outer import OUTER
from primitives.properties import on_change
from primitives.reductions import End
from primitives.registry import get_unary
from primitives.statistics import STATISTICS, get_statistic
from primitives.tensors import Block, Matrix, NetworkValues, cut, number, whole

LIMIT = 40  # elements kept of each tensor
TOLERANCE = 1e-5
_JITTER = 1e-12  # a score that changes with it is rounding noise, which cannot be reproduced
_STABLE = 1e-7
_FEW, _MANY = 2, 8  # perturbations, for formulas that cannot and that can jump

END_NAMES = get_args(End)

Rows = list[list[float]]


def networks() -> list[list[dict[str, list[Rows]]]]:
    """Three networks of one to three blocks: network[block][statistic][tensor][row][column]."""
    tensor = drawn_from(20240501)
    weights = [(6, 8), (8, 6), (4, 9), (5, 10)]

    def block(n_weights: int) -> dict[str, list[Rows]]:
        return {
            "A": [tensor(10, 12, -0.2, 1.5)],
            "J": [tensor(10, 8, -0.3, 0.4)],
            "G": [tensor(*shape, -0.5, 0.6) for shape in weights[:n_weights]],
            "H": [tensor(10, 8, -1.5, 1.8) for _ in range(3)],
            "W": [tensor(*shape, -0.9, 0.8) for shape in weights[:n_weights]],
            "S": [tensor(12, 6, 0.01, 0.6)],
        }

    return [[block(2 + (n + i) % 3) for i in range(n)] for n in (1, 2, 3)]


def network_ends() -> list[dict[str, dict[str, list[Rows]]]]:
    """The ends of these networks: network[end][statistic][tensor][row][column]."""
    tensor = drawn_from(20261116)

    def end(n_weights: int) -> dict[str, list[Rows]]:
        weights = [(8, 20), (8, 6), (8, 5)][:n_weights]
        return {
            "A": [tensor(10, 8, -1.1, 1.4)],
            "J": [tensor(10, 8, -0.4, 0.3)],
            "G": [tensor(*shape, -0.6, 0.5) for shape in weights],
            "H": [tensor(10, 8, -1.5, 1.8)],
            "W": [tensor(*shape, -0.8, 0.9) for shape in weights],
            "S": [tensor(12, 6, 0.01, 0.6)],
        }

    return [{"embedding": end(3 - n), "head": end(1 + n)} for n in range(3)]


def drawn_from(state: int) -> Callable[[int, int, float, float], Rows]:
    """A generator of matrices: rows, columns and the range of their numbers."""

    def number(low: float, high: float) -> float:
        nonlocal state
        state = (state * 1103515245 + 12345) % 2**31
        return low + (high - low) * state / 2**31

    return lambda rows, columns, low, high: [
        [number(low, high) for _ in range(columns)] for _ in range(rows)
    ]


def network_sizes() -> list[dict[str, list[dict[str, float]]]]:
    """The sizes of their positions: network["blocks" or end][position][size]."""
    return [
        {
            "blocks": [
                {
                    "params": 96 + 17 * n + 40 * i,
                    "width": 8 + i,
                    "ffn": 12 + n + 3 * i,
                    "heads": i + 1,
                }
                for i in range(n)
            ],
            "embedding": [{"params": 160 + 31 * n, "width": 4 + n}],
            "head": [{"params": 50 + 9 * n, "width": 8 + n}],
        }
        for n in (1, 2, 3)
    ]


def columns(names: Sequence[str]) -> list[dict[str, float]]:
    """Of each network the values of the columns, positive and different from name to name."""
    return [
        {name: 1.5 + (n + 1) * sum(map(ord, name)) % 89 / 10 for name in names} for n in range(3)
    ]


_SYNTHETIC = tuple(networks()[0][0])


def stand_in(name: str) -> str:
    """The statistic of `networks` whose tensors stand for this statistic: itself if it is there.

    Else one that it is aligned with, or one with the same range.
    """
    own = get_statistic(name)
    aligned = (other for other in _SYNTHETIC if get_statistic(other).group == own.group)
    alike = (other for other in _SYNTHETIC if get_statistic(other).range == own.range)
    return name if name in _SYNTHETIC else next(chain(aligned, alike), "H")


@lru_cache(maxsize=256)
def scores(formula: Formula, limit: int | None = LIMIT) -> tuple[float | None, ...]:
    """The formula's score on each network; None where it has none, or only rounding noise."""
    n = _MANY if _can_jump(formula) else _FEW
    of_networks = columns(formula.columns)
    perturbed = [
        [
            naive.score(formula, network, columns=values)
            for network, values in zip(network_values(limit, seed), of_networks, strict=True)
        ]
        for seed in range(n)
    ]
    return tuple(_stable(values) for values in zip(*perturbed, strict=True))


def _can_jump(formula: Formula) -> bool:
    """Whether the sign of a rounding error could decide the score: 1/x, log x jump at zero."""
    inside = [node for term in formula.terms for node in walk(term.expression)]
    unaries = {node.operation for node in inside if isinstance(node, Apply)}
    if any(get_unary(name).traits.jumps_at_zero for name in unaries):
        return True
    return any(OUTER[name].jumps_at_zero for name in operations(formula))


def _stable(values: Sequence[float | Rejected]) -> float | None:
    first, *others = values
    if isinstance(first, Rejected):
        return None
    is_stable = all(not isinstance(o, Rejected) and _close(first, o, _STABLE) for o in others)
    return first if is_stable else None


@lru_cache(maxsize=2 * _MANY)
def network_values(limit: int | None, perturbation: int = 0) -> list[NetworkValues]:
    """The networks for the reference evaluation, cut or whole; 0 perturbs nothing."""

    def matrix(rows: Rows) -> Matrix:
        values = np.array(rows, dtype=np.float32).astype(
            np.float64
        )  # the precision of extracted statistics
        steps = np.arange(values.size).reshape(values.shape) * (2 * perturbation + 1) % 7 - 3
        perturbed = values * (1 + _JITTER * steps) if perturbation else values
        return whole(perturbed) if limit is None else cut(perturbed, limit)

    def position(
        tensors: Mapping[str, list[Rows]], sizes: Mapping[str, float], is_end: bool
    ) -> Block:
        names = [name for name, own in STATISTICS.items() if own.at_ends or not is_end]
        matrices = {name: [matrix(rows) for rows in tensors[stand_in(name)]] for name in names}
        return matrices | {name: number(size) for name, size in sizes.items()}

    values = []
    for blocks, ends, sizes in zip(networks(), network_ends(), network_sizes(), strict=True):
        embedding, head = (position(ends[end], sizes[end][0], True) for end in END_NAMES)
        pairs = zip(blocks, sizes["blocks"], strict=True)
        values.append(NetworkValues([position(*pair, False) for pair in pairs], embedding, head))
    return values


for _cache in (scores, network_values):
    on_change(_cache.cache_clear)


def agree(mine: Sequence[float | None], theirs: Sequence[float | None]) -> bool:
    """Whether the scores are equal wherever both have one."""
    return len(mine) == len(theirs) and all(
        a is None or b is None or _close(a, b, TOLERANCE) for a, b in zip(mine, theirs, strict=True)
    )


def _close(a: float, b: float, tolerance: float) -> bool:
    return math.isclose(a, b, rel_tol=tolerance, abs_tol=1e-12)
