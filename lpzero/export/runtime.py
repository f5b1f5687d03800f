"""The runtime of exported modules: how they score; needs only torch.

The exporter copies what a formula needs and puts its constants, operations and terms in the place
of those here, which are of the formula mul(sum(W), depth). A line that ends in `# with ends` (or
sizes, columns, inputs, taps, gradients) is copied only for a formula that reads them.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from lpzero.export.model_statistics import (
    ENDS,
    SIZES,
    SOURCES,
    USES,
    Loss,
    Position,
    statistics,
)
from lpzero.export.synthetic_networks import network_ends, network_sizes, networks
from primitives.tensors import have_same_shape, right_factor

SIGN = 1
LIMIT: int | None = 4096  # elements kept of each tensor; None keeps all
COLUMNS: tuple[str, ...] = ("depth",)  # numbers in the formula that no network gives
TRIAL_LIMIT = 40
TRIAL_TENSORS = {"W": "W"}  # which of the synthetic tensors each statistic reads
TRIAL_COLUMNS: tuple[dict[str, float], ...] = ()
TRIAL_SCORES: tuple[float | None, ...] = ()
TOLERANCE = 1e-5


def score(
    blocks: Sequence[Position],
    limit: int | None = LIMIT,
    ends: Mapping[str, Position] | None = None,  # with ends
    columns: Mapping[str, float] | None = None,  # with columns
) -> float:
    """The network's score, larger is better; nan where a number exceeds float64 or is undefined.

    blocks[i]["W"] lists the block's tensors of the statistic W: weights and gradients at them as
    the model stores them, all others (..., features); sizes as blocks[i]["params"] are numbers.
    The engine keeps `limit` elements of each tensor, in whole columns; None keeps all.
    """
    if not blocks:
        raise ValueError("no blocks were given; expected at least one")
    given = {name: column(columns or {}, name) for name in COLUMNS}  # with columns
    try:
        read = {"blocks": [cut_all(b, "blocks", f"block {i}", limit) for i, b in enumerate(blocks)]}
        for end in ENDS:  # with ends
            read[end] = [cut_all((ends or {}).get(end, {}), end, f"the {end}", limit)]  # with ends
        value = formula_value(
            read,
            given,  # with columns
        )
    except (OutOfRangeError, OverflowError):
        return math.nan
    return SIGN * float(value)


def score_model(
    model: nn.Module,
    inputs: Any,
    loss: Loss | None = None,
    blocks: Sequence[nn.Module] | None = None,
    taps: dict[str, Sequence[str]] | None = None,
    limit: int | None = LIMIT,
    ends: Mapping[str, Sequence[Any]] | None = None,  # with ends
    sizes: Mapping[str, Any] | None = None,  # with sizes
    columns: Mapping[str, float] | None = None,  # with columns
) -> float:
    """The score of an untrained model on a batch; see `statistics`."""
    taken: Any = statistics(
        model,
        inputs,
        loss,
        blocks,
        taps,
        ends,  # with ends
        sizes,  # with sizes
    )
    taken, at_ends = taken  # with ends
    return score(
        taken,
        limit,
        at_ends,  # with ends
        columns,  # with columns
    )


def column(columns: Mapping[str, float], name: str) -> float:
    """The column's value."""
    if name not in columns:
        raise ValueError(f"the formula has the column {name}: give columns={{{name!r}: ...}}")
    return float(columns[name])


class Matrix(NamedTuple):
    """values (rows, kept columns) in float64, and the width before the cut."""

    values: Tensor
    true_columns: int

    @property
    def rows(self) -> int:
        return int(self.values.shape[0])

    @property
    def kept(self) -> int:
        return int(self.values.shape[1])

    @property
    def column_scale(self) -> float:
        """True over kept columns: the factor that rescales a sum over the cut axis."""
        return self.true_columns / self.kept


Matrices = dict[str, list[Matrix]]
Value = Callable[[Matrices], Tensor]


class OutOfRangeError(ArithmeticError):
    """A number exceeds the range of float64, or an operation is not defined there."""


def cut_all(position: Position, kind: str, where: str, limit: int | None) -> Matrices:
    """The tensors and sizes that the formula reads at a block or an end, cut."""
    names = USES[kind]
    names += SIZES[kind]  # with sizes
    for name in names:
        if name not in position or position[name] in ([], ()):
            raise ValueError(f"{where} has no {name}, which the formula reads there")
    found = {name: [cut(x, limit, name) for x in position[name]] for name in USES[kind]}
    for name in SIZES[kind]:  # with sizes
        found[name] = [size(position[name], f"{where}: {name}")]  # with sizes
    return found


def cut(tensor: Tensor, limit: int | None, statistic: str) -> Matrix:
    """The tensor in two dimensions, with evenly spaced columns that fit in `limit` elements."""
    flat = tensor.detach().float()
    is_of_weights = SOURCES[statistic] == "weights"
    flat = flat.flatten(1) if is_of_weights else flat.reshape(-1, flat.shape[-1])
    rows, width = flat.shape
    kept = width if limit is None else max(1, min(width, limit // rows))
    if kept < width:
        flat = flat[:, kept_columns(width, kept).to(flat.device)]
    return Matrix(finite(flat.cpu().double()), width)


def kept_columns(true: int, kept: int) -> Tensor:
    """Which of `true` columns are kept."""
    places = (torch.arange(kept, dtype=torch.float64) + 0.5) * true / kept
    return places.floor().long()


def size(value: float, where: str) -> Matrix:
    """The size as a matrix."""
    if not value >= 1:
        raise ValueError(f"{where} is {value!r}, expected at least 1")
    return scalar(number(float(value)))


def finite(values: Tensor) -> Tensor:
    """The values, all finite."""
    if not bool(torch.isfinite(values).all()):
        raise OutOfRangeError
    return values


def scalar(value: Tensor) -> Matrix:
    """One number as a matrix."""
    return Matrix(finite(value).reshape(1, 1), 1)


def each(operation: Any, matrices: list[Matrix]) -> list[Matrix]:
    """The operation on each matrix, which keeps its shape."""
    return [Matrix(finite(operation(x.values)), x.true_columns) for x in matrices]


def reduced(operation: Any, matrices: list[Matrix], grows: float) -> list[Matrix]:
    """One number per matrix, rescaled to the true element count where it grows with it."""
    return [scalar(operation(x.values) * x.column_scale**grows) for x in matrices]


def block_mean(matrices: list[Matrix]) -> Tensor:
    """The unweighted mean over tensors of each tensor's mean."""
    means = [torch.mean(x.values) for x in matrices]
    return sum(means[1:], start=means[0]) / len(means)


def one_scalar(matrices: list[Matrix]) -> list[Matrix]:
    """The block's mean, used where tensors do not correspond to those of the other side."""
    return [scalar(block_mean(matrices))]


def pairwise(operation: Any, left: list[Matrix], right: list[Matrix]) -> list[Matrix]:
    """The operation on matrices of equal shape, or with a number per tensor or per block."""
    n = max(len(left), len(right))
    left, right = (side * n if len(side) == 1 else side for side in (left, right))
    return [
        Matrix(finite(operation(a.values, b.values)), max(a.true_columns, b.true_columns))
        for a, b in paired(left, right)
    ]


def of_matrices(operation: Any, left: list[Matrix], right: list[Matrix]) -> list[Matrix]:
    """The operation element by element, or on the means where the true shapes differ."""
    results = []
    for a, b in paired(left, right):
        sides = ([a], [b]) if have_same_shape(a, b) else (one_scalar([a]), one_scalar([b]))
        results += pairwise(operation, *sides)
    return results


def matrix_product(left: list[Matrix], right: list[Matrix]) -> list[Matrix]:
    """The matrix product of each pair, or the product of the means where none is defined."""
    results = []
    for a, b in paired(left, right):
        factor = right_factor(a, b)
        if factor is None:
            results += pairwise(torch.mul, one_scalar([a]), one_scalar([b]))
        else:
            product = a.values @ factor.values * a.column_scale
            results.append(Matrix(finite(product), factor.true_columns))
    return results


def paired(left: list[Matrix], right: list[Matrix]) -> list[tuple[Any, Any]]:
    """The tensors that correspond to each other."""
    if len(left) != len(right):
        raise ValueError(f"{len(left)} tensors against {len(right)}; expected equal numbers")
    return list(zip(left, right, strict=True))


def over_positions(reads: Any, value: Value, positions: list[Matrices]) -> Tensor:
    """The values at the positions that a reduction reads, added up and divided as it says."""
    read, divisor = reads(len(positions))
    return number(math.fsum([float(value(position)) for position in positions[read]]) / divisor)


def number(value: float) -> Tensor:
    """The value as a tensor, if it is finite."""
    return finite(torch.tensor(value, dtype=torch.float64))


def reads_sum(n: int) -> tuple[slice, int]:
    """The blocks that the reduction reads, and the divisor of their sum."""
    return slice(n), 1


def term_1(block: Matrices) -> Tensor:
    """The value of the first term at one position."""
    return block_mean(block["W"])


def formula_value(read: dict[str, list[Matrices]], columns: Mapping[str, float]) -> Tensor:
    """The formula without its sign."""
    t1 = over_positions(reads_sum, term_1, read["blocks"])
    return finite(t1 * number(columns["depth"]))


def self_test() -> list[tuple[float, float]]:
    """Pairs of this module's score and the engine's on synthetic networks."""
    pairs = []
    for i, expected in enumerate(TRIAL_SCORES):
        blocks = [synthetic(block) for block in networks()[i]]
        ends = {end: synthetic(at_end) for end, at_end in network_ends()[i].items()}  # with ends
        for block, sizes in zip(blocks, network_sizes()[i]["blocks"], strict=True):  # with sizes
            block.update(sizes)  # with sizes
        for end in ends:  # with ends sizes
            ends[end].update(network_sizes()[i][end][0])  # with ends sizes
        if expected is not None:
            found = score(
                blocks,
                TRIAL_LIMIT,
                ends,  # with ends
                TRIAL_COLUMNS[i],  # with columns
            )
            pairs.append((found, expected))
    return pairs


def synthetic(position: Mapping[str, Any]) -> dict[str, Any]:
    """The tensors at a synthetic position."""
    return {
        name: [torch.tensor(rows) for rows in position[own]] for name, own in TRIAL_TENSORS.items()
    }


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
