"""What modules of formulas beyond the paper's form have instead of parts of `runtime`.

Copied into them as `runtime` is; the exporter puts its own terms and `combined` in the place of
those here, which are of the formula mul(sum(W), depth).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from lpzero.export.model_statistics import USES, Loss
from lpzero.export.position_statistics import (
    END_SIZES,
    END_USES,
    SIZES,
    Position,
    statistics,
)
from lpzero.export.runtime import (
    LIMIT,
    SIGN,
    TRIAL_LIMIT,
    TRIAL_SCORES,
    TRIAL_TENSORS,
    CutMatrix,
    OutOfRangeError,
    block_mean,
    cut,
    scalar,
)
from lpzero.export.trial import ends as trial_ends
from lpzero.export.trial import networks
from lpzero.export.trial import sizes as trial_sizes

COLUMNS: tuple[str, ...] = ("depth",)
TRIAL_COLUMNS: tuple[dict[str, float], ...] = ()
Term = tuple[str, Callable[[dict[str, list[CutMatrix]]], Tensor]]


def score(
    blocks: Sequence[Position],
    limit: int | None = LIMIT,
    ends: Mapping[str, Position] | None = None,
    columns: Mapping[str, float] | None = None,
) -> float:
    """The network's score, larger is better; nan where a number exceeds float64 or is undefined.

    blocks[i]["W"] is the list of the block's tensors of the statistic W: weights and gradients at
    them as the model stores them, all others (..., features). blocks[i]["params"] and other sizes
    are numbers. `ends` has the same of "embedding" and "head", their weights features x the rest.
    `columns` are the other numbers in the formula. The engine keeps `limit` elements of each
    tensor, in whole columns; None takes the whole tensors.
    """
    if not blocks:
        raise ValueError("no blocks were given; expected at least one")
    given = {name: float(column(columns or {}, name)) for name in COLUMNS}
    try:
        taken = [
            read(block, USES, SIZES, limit, f"block {index}") for index, block in enumerate(blocks)
        ]
        at_ends = {
            end: [read((ends or {}).get(end, {}), names, END_SIZES[end], limit, f"the {end}")]
            for end, names in END_USES.items()
        }
        found = []
        for reduction, value in terms():
            positions = at_ends[reduction] if reduction in at_ends else read_by(reduction, taken)
            values = [float(value(position)) for position in positions]
            found.append(reduced_by(reduction, values, len(taken)))
        return SIGN * combined(found, {name: number(value) for name, value in given.items()})
    except (OutOfRangeError, OverflowError):
        return math.nan


def score_model(
    model: nn.Module,
    inputs: Any,
    loss: Loss | None = None,
    blocks: Sequence[nn.Module] | None = None,
    taps: dict[str, Sequence[str]] | None = None,
    limit: int | None = LIMIT,
    ends: Mapping[str, Sequence[Any]] | None = None,
    sizes: Mapping[str, Any] | None = None,
    columns: Mapping[str, float] | None = None,
) -> float:
    """The score of an untrained model on a batch; see `statistics`."""
    found = statistics(model, inputs, loss, blocks, taps, ends, sizes)
    return score(found.blocks, limit, found.ends, columns)


def column(columns: Mapping[str, float], name: str) -> float:
    """The column's value."""
    if name not in columns:
        raise ValueError(f"the formula has the column {name}: give columns={{{name!r}: ...}}")
    return columns[name]


def read(
    position: Position, names: Sequence[str], sizes: Sequence[str], limit: int | None, where: str
) -> dict[str, list[CutMatrix]]:
    """The tensors and sizes of one position, cut."""
    for name in (*names, *sizes):
        if name not in position or (name in names and not position[name]):
            raise ValueError(f"{where} has no {name}, which the formula reads there")
    found = {name: [cut(x, limit, name) for x in position[name]] for name in names}
    for name in sizes:
        if not position[name] >= 1:
            raise ValueError(f"{where}: {name} is {position[name]!r}, expected at least 1")
        found[name] = [scalar(torch.tensor(float(position[name]), dtype=torch.float64))]
    return found


def read_by(reduction: str, blocks: list[Any]) -> list[Any]:
    """The blocks that the reduction reads."""
    if reduction == "inner" and len(blocks) > 1:
        return blocks[:-1]
    return {"last": blocks[-1:], "first": blocks[:1]}.get(reduction, blocks)


def reduced_by(reduction: str, values: list[float], n_blocks: int) -> float:
    """One number from the values; `inner` of a single block is half of it."""
    total = math.fsum(values)
    if reduction == "mean":
        return number(total / len(values))
    return number(total / 2 if reduction == "inner" and n_blocks == 1 else total)


def number(value: float) -> float:
    """The value, if it is finite."""
    if not math.isfinite(value):
        raise OutOfRangeError
    return value


def defined(holds: bool) -> None:
    """Nothing, if the operation is defined there."""
    if not holds:
        raise OutOfRangeError


def outer_sqrt(x: float) -> float:
    """The root of a number that is not negative."""
    defined(x >= 0)
    return math.sqrt(x)


def outer_log(x: float) -> float:
    """The logarithm of a positive number."""
    defined(x > 0)
    return math.log(x)


def outer_inverse(x: float) -> float:
    """1/x of a number that is not zero."""
    defined(x != 0)
    return number(1.0 / x)


def outer_square(x: float) -> float:
    """The square."""
    return number(x * x)


def outer_abs(x: float) -> float:
    """The absolute value."""
    return abs(x)


def outer_signed_log(x: float) -> float:
    """sgn(x) log(1 + |x|)."""
    return math.copysign(math.log1p(abs(x)), x)


def outer_mul(*factors: float) -> float:
    """The product."""
    return number(math.prod(factors))


def outer_add(*summands: float) -> float:
    """The sum."""
    return number(sum(summands))


def outer_sub(x: float, y: float) -> float:
    """The difference."""
    return number(x - y)


def term_1(block: dict[str, list[CutMatrix]]) -> Tensor:
    """The value of the first term at one position."""
    return block_mean(block["W"])


def terms() -> list[Term]:
    """The reduction of each term over positions, and its value at one position."""
    return [("sum", term_1)]


def combined(terms: Sequence[float], columns: Mapping[str, float]) -> float:
    """The score, without its sign, from the values of its terms and columns."""
    return outer_mul(terms[0], columns["depth"])


def self_test() -> list[tuple[float, float]]:
    """Pairs of this module's score and the engine's on synthetic networks."""
    synthetic = zip(
        networks(), trial_ends(), trial_sizes(), TRIAL_COLUMNS, TRIAL_SCORES, strict=True
    )
    pairs = []
    for network, at_ends, sizes, columns, expected in synthetic:
        blocks = [trial_position(*pair) for pair in zip(network, sizes["blocks"], strict=True)]
        ends = {end: trial_position(drawn, sizes[end][0]) for end, drawn in at_ends.items()}
        if expected is not None:
            pairs.append((score(blocks, TRIAL_LIMIT, ends, columns), expected))
    return pairs


def trial_position(drawn: Mapping[str, Any], sizes: Mapping[str, float]) -> Position:
    """The tensors and sizes of a synthetic position."""
    tensors = {
        name: [torch.tensor(rows) for rows in drawn[own]] for name, own in TRIAL_TENSORS.items()
    }
    return {**tensors, **sizes}
