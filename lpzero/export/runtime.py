"""The runtime of exported modules; needs only torch.

The exporter copies the source of what a formula needs and replaces the constants, operations and
`block_value` below, which are those of the formula sum(W).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from lpzero.export.model_statistics import SOURCES, USES, Block, Loss, statistics
from lpzero.export.trial import networks

REDUCTION = "sum"  # over blocks
SIGN = 1
LIMIT: int | None = 4096  # elements kept of each tensor; None keeps all
TRIAL_LIMIT = 40
TRIAL_TENSORS = {"W": "W"}  # which of the synthetic tensors each statistic reads
TRIAL_SCORES: tuple[float | None, ...] = ()
TOLERANCE = 1e-5


def score(blocks: Sequence[Block], limit: int | None = LIMIT) -> float:
    """The network's score, larger is better; nan where a number exceeds float64.

    blocks[i]["W"] lists the block's tensors of the statistic W: weights and their gradients
    as the model stores them, all others (..., features). The engine keeps `limit` elements of
    each tensor, in whole columns; None keeps the whole tensors.
    """
    if not blocks:
        raise ValueError("no blocks were given; expected at least one")
    try:
        values = [
            float(block_value({name: [cut(x, limit, name) for x in block[name]] for name in USES}))
            for block in blocks
        ]
        total = math.fsum(values)
    except (OutOfRangeError, OverflowError):
        return math.nan
    result = SIGN * (total / len(values) if REDUCTION == "mean" else total)
    return result if math.isfinite(result) else math.nan


def score_model(
    model: nn.Module,
    inputs: Any,
    loss: Loss | None = None,
    blocks: Sequence[nn.Module] | None = None,
    taps: dict[str, Sequence[str]] | None = None,
    limit: int | None = LIMIT,
) -> float:
    """The score of an untrained model on a batch; see `statistics`."""
    return score(statistics(model, inputs, loss, blocks, taps), limit)


class CutMatrix(NamedTuple):
    """values (rows, kept columns) in float64, and the width before the cut."""

    values: Tensor
    true_columns: int

    @property
    def column_scale(self) -> float:
        """True over kept columns: the factor that rescales a sum over the cut axis."""
        return self.true_columns / self.values.shape[1]


class OutOfRangeError(ArithmeticError):
    """A number exceeds the range of float64."""


def cut(tensor: Tensor, limit: int | None, statistic: str) -> CutMatrix:
    """The tensor in two dimensions, with evenly spaced columns that fit in `limit` elements."""
    flat = tensor.detach().float()
    is_of_weights = SOURCES[statistic] == "weights"
    flat = flat.flatten(1) if is_of_weights else flat.reshape(-1, flat.shape[-1])
    rows, width = flat.shape
    kept = width if limit is None else max(1, min(width, limit // rows))
    if kept < width:
        flat = flat[:, kept_columns(width, kept).to(flat.device)]
    return CutMatrix(finite(flat.cpu().double()), width)


def kept_columns(true: int, kept: int) -> Tensor:
    """Which of `true` columns are kept."""
    places = (torch.arange(kept, dtype=torch.float64) + 0.5) * true / kept
    return places.floor().long()


def finite(values: Tensor) -> Tensor:
    """The values, all finite."""
    if not bool(torch.isfinite(values).all()):
        raise OutOfRangeError
    return values


def scalar(value: Tensor) -> CutMatrix:
    """One number as a matrix."""
    return CutMatrix(finite(value).reshape(1, 1), 1)


def each(operation: Any, matrices: list[CutMatrix]) -> list[CutMatrix]:
    """A matrix of the same shape for each."""
    return [CutMatrix(finite(operation(x.values)), x.true_columns) for x in matrices]


def reduced(operation: Any, matrices: list[CutMatrix], grows: float) -> list[CutMatrix]:
    """One number per matrix, rescaled to the true element count where it grows with it."""
    return [scalar(operation(x.values) * x.column_scale**grows) for x in matrices]


def block_mean(matrices: list[CutMatrix]) -> Tensor:
    """The unweighted mean over tensors of each tensor's mean."""
    means = [torch.mean(x.values) for x in matrices]
    return sum(means[1:], start=means[0]) / len(means)


def one_scalar(matrices: list[CutMatrix]) -> list[CutMatrix]:
    """The block's mean, used where tensors do not correspond to those of the other side."""
    return [scalar(block_mean(matrices))]


def with_scalar(operation: Any, left: list[CutMatrix], right: list[CutMatrix]) -> list[CutMatrix]:
    """The operation where one side has one number per tensor, or one for the whole block."""
    n = max(len(left), len(right))
    left, right = (side * n if len(side) == 1 else side for side in (left, right))
    return [
        CutMatrix(finite(operation(a.values, b.values)), max(a.true_columns, b.true_columns))
        for a, b in paired(left, right)
    ]


def of_equals(operation: Any, left: list[CutMatrix], right: list[CutMatrix]) -> list[CutMatrix]:
    """The operation element by element, or on the means where the true shapes differ."""
    results = []
    for a, b in paired(left, right):
        if a.values.shape == b.values.shape and a.true_columns == b.true_columns:
            results.append(CutMatrix(finite(operation(a.values, b.values)), a.true_columns))
        else:
            results += with_scalar(operation, one_scalar([a]), one_scalar([b]))
    return results


def matrix_product(left: list[CutMatrix], right: list[CutMatrix]) -> list[CutMatrix]:
    """a.b if the true inner sizes agree, a.b' if the true widths do, else a product of means."""
    results = []
    for a, b in paired(left, right):
        kept, (rows, other) = a.values.shape[1], b.values.shape
        if a.true_columns == rows:
            partner = b.values if kept == rows else b.values[kept_columns(rows, kept)]
            results.append(CutMatrix(finite(a.values @ partner * a.column_scale), b.true_columns))
        elif a.true_columns == b.true_columns and kept == other:
            results.append(CutMatrix(finite(a.values @ b.values.T * a.column_scale), rows))
        else:
            results += with_scalar(torch.mul, one_scalar([a]), one_scalar([b]))
    return results


def paired(left: list[CutMatrix], right: list[CutMatrix]) -> list[tuple[CutMatrix, CutMatrix]]:
    """The tensors that correspond to each other."""
    if len(left) != len(right):
        raise ValueError(f"{len(left)} tensors against {len(right)}; expected equal numbers")
    return list(zip(left, right, strict=True))


def block_value(block: dict[str, list[CutMatrix]]) -> Tensor:
    """The formula's value on one block."""
    return block_mean(block["W"])


def self_test() -> list[tuple[float, float]]:
    """Pairs of this module's score and the engine's on synthetic networks."""
    pairs = []
    for network, expected in zip(networks(), TRIAL_SCORES, strict=True):
        tensors: list[Block] = [
            {name: [torch.tensor(rows) for rows in block[TRIAL_TENSORS[name]]] for name in USES}
            for block in network
        ]
        if expected is not None:
            pairs.append((score(tensors, TRIAL_LIMIT), expected))
    return pairs


def main() -> int:
    """Run the self-test and print the result."""
    pairs = self_test()
    wrong = [p for p in pairs if not math.isclose(*p, rel_tol=TOLERANCE, abs_tol=1e-12)]
    for found, expected in wrong:
        print(f"self-test: {found!r} computed, {expected!r} expected", file=sys.stderr)
    print(f"self-test: {len(pairs) - len(wrong)} of {len(pairs)} scores match the engine's")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
