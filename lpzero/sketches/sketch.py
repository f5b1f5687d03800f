"""A sketch: the statistics of one architecture, subsampled to a fixed size, and its file format.

A file is a sealed envelope (`lpzero.files`). The header says what was sketched and how, the sizes
that the space states, and the shape of every matrix; the numbers are little-endian float32, matrix
after matrix, blocks before ends, statistics in the order of their declaration. Equal inputs give
equal bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lpzero import files
from lpzero.errors import EnvelopeError, InputError, LPZeroError
from lpzero.statistics import DEFINITIONS, LOSSES, OURS
from primitives.statistics import STATISTICS
from primitives.tensors import Matrix
from spaces.base import ENDS
from spaces.minibatch import PATHS, Minibatch

if TYPE_CHECKING:
    from torch import Tensor

    from spaces.base import Space

# Incremented whenever a change of extraction or format changes the content of a file.
SCHEMA = 2
MAGIC = b"LPZSKT01"
NUMBER_BYTES = 4  # float32
_IDENTITY = frozenset({"schema", "space", "arch", "options"})
# Optional in a header: the vector instructions that the numbers were computed with.
CAPABILITY = "capability"


class SketchError(LPZeroError, RuntimeError):
    """Bytes that are not a complete sketch, or numbers that are not valid in one."""


@dataclass(frozen=True, slots=True)
class SketchOptions:
    """How a sketch is built; part of its address.

    limit: elements kept per matrix (None: all); loss: see `statistics.extraction`; seed: of the
    weights; batch_seed: of the tokens or images, and of the labels or the cotangent; batch: its
    size, length and text where they are not the space's own; definitions: of H, W and G.
    """

    limit: int | None = 4096
    loss: str = "auto"
    seed: int = 0
    batch_seed: int = 0
    batch: Minibatch | None = None
    definitions: str = OURS

    def __post_init__(self) -> None:
        if self.definitions not in DEFINITIONS:
            raise InputError(
                f"definitions {self.definitions!r} are unknown; use one of {', '.join(DEFINITIONS)}"
            )
        if self.limit is not None and self.limit < 1:
            raise InputError(f"a limit of {self.limit} elements was given; expected at least 1")
        if self.loss not in LOSSES:
            raise InputError(f"loss {self.loss!r} is unknown; use one of {', '.join(LOSSES)}")

    def tokens(self, space: Space[Any]) -> Tensor:
        """The minibatch of the space's networks."""
        return (
            space.batch(self.batch_seed)
            if self.batch is None
            else self.batch.of(space, self.batch_seed)
        )

    def check_batch(self, space: Space[Any], largest: Any, chunk: int | None) -> None:
        """Raise an error unless the space has the chosen batch and the largest network can run it.

        `chunk` inputs at a time go through the network; None is all of them.
        """
        if self.batch is not None:
            self.batch.check_pass(space, largest, chunk)
            self.batch.of(space, self.batch_seed)

    def to_json(self) -> dict[str, Any]:
        """The options as JSON values; a batch and definitions that are the usual are left out."""
        value: dict[str, Any] = {
            "limit": self.limit,
            "loss": self.loss,
            "seed": self.seed,
            "batch_seed": self.batch_seed,
        }
        if self.batch is not None:
            value["batch"] = self.batch.to_json()
        return value if self.definitions == OURS else {**value, "definitions": self.definitions}


def identity(space: Space[Any], arch: Any, options: SketchOptions) -> dict[str, Any]:
    """Everything that determines the content of a sketch, as JSON values; needs no torch."""
    return {
        "schema": SCHEMA,
        "space": space_identity(space),
        "arch": space.to_json(arch),
        "options": _options_identity(options),
    }


def _options_identity(options: SketchOptions) -> dict[str, Any]:
    """The options without the paths of files, which do not change the content."""
    value = options.to_json()
    for path in PATHS:
        value.get("batch", {}).pop(path, None)
    return value


def address(space: Space[Any], arch: Any, options: SketchOptions) -> str:
    """The sketch's name in a store: a digest of its identity."""
    made = address_of(identity(space, arch, options))
    assert made is not None, "an identity is complete"
    return made


def address_of(header: Mapping[str, Any]) -> str | None:
    """The address that a sketch with this header has; None if the header states no identity."""
    if not header.keys() >= _IDENTITY:
        return None
    stated = {name: header[name] for name in _IDENTITY}
    return hashlib.sha256(files.canonical_json(stated)).hexdigest()


@lru_cache(maxsize=32)
def space_identity(space: Space[Any]) -> dict[str, Any]:
    """The space's version, its fields (batch shape and vocabulary among them) and its text."""
    named: dict[str, Any] = {
        name: str(value) if isinstance(value, range) else value
        for name, value in space.identity().items()
    }
    named |= {"kind": type(space).__name__, "version": space.version}
    if space.reads_text:
        from spaces.minibatch import pydoc_digest  # loads torch, which most addresses do not need

        named["text"] = pydoc_digest()
    return dict(json.loads(files.canonical_json(named)))


@dataclass(frozen=True, eq=False)
class Sketch:
    """The statistics of one architecture: header, and every number in one row (float32)."""

    header: Mapping[str, Any]
    numbers: NDArray[np.float32]

    def __post_init__(self) -> None:
        for block in self.header["blocks"]:
            _require_names(block, tuple(STATISTICS))
        for end in self._ends.values():
            _require_names(end, end_statistics())

    @property
    def n_blocks(self) -> int:
        return len(self.header["blocks"])

    @property
    def ends(self) -> tuple[str, ...]:
        """Which of `embedding` and `head` it holds; a model that does not name its ends has none.

        An end may have no weights, as the head of an encoder: then W and G are empty.
        """
        return tuple(end for end in ENDS if end in self._ends)

    @property
    def sizes(self) -> Mapping[str, Any] | None:
        """The space's `block_sizes` under "blocks" and `end_sizes` under "ends".

        None if the sketch is not of a space's architecture.
        """
        return self.header.get("sizes")

    @property
    def _ends(self) -> Mapping[str, Any]:
        ends: Mapping[str, Any] = self.header.get("ends", {})
        return ends

    def matrices(self, position: int | str, statistic: str) -> list[Matrix]:
        """The matrices of one statistic at a block or an end, copied in float64."""
        stored = self.stored_matrices(position, statistic)
        return [Matrix(matrix.values.astype(np.float64), matrix.true_columns) for matrix in stored]

    def stored_matrices(self, position: int | str, statistic: str) -> list[Matrix]:
        """The same matrices as views of the sketch's numbers, in float32."""
        if (position, statistic) not in self._places:
            held = ", ".join(self.ends) or "none"
            raise SketchError(
                f"the sketch has no statistic {statistic} at {position!r}; ends have"
                f" {' '.join(end_statistics())}, and this sketch has the ends: {held}"
            )
        return [
            Matrix(self.numbers[start : start + rows * kept].reshape(rows, kept), true)
            for start, rows, kept, true in self._places[position, statistic]
        ]

    def shapes(self, block: int, statistic: str) -> list[tuple[int, int, int]]:
        """(rows, kept columns, true columns) of each matrix."""
        return [(rows, kept, true) for _, rows, kept, true in self._places[block, statistic]]

    @cached_property
    def _places(self) -> dict[tuple[int | str, str], list[tuple[int, int, int, int]]]:
        places: dict[tuple[int | str, str], list[tuple[int, int, int, int]]] = {}
        start = 0
        for position, name, shapes in statistics_in_order(self.header["blocks"], self._ends):
            places[position, name] = []
            for rows, kept, true in shapes:
                places[position, name].append((start, rows, kept, true))
                start += rows * kept
        return places


def statistics_in_order(
    blocks: Sequence[Mapping[str, Any]], ends: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[int | str, str, Any]]:
    """(block's index or end's name, statistic, what stands there), as a file holds them."""
    for index, block in enumerate(blocks):
        for name in STATISTICS:
            yield index, name, block[name]
    for end in ENDS:
        if end in ends:
            for name in end_statistics():
                yield end, name, ends[end][name]


def end_statistics() -> tuple[str, ...]:
    """The names of the statistics that the embedding and the head have."""
    return tuple(name for name, statistic in STATISTICS.items() if statistic.at_ends)


def _require_names(held: Mapping[str, Any], declared: Sequence[str]) -> None:
    if held.keys() != set(declared):
        raise SketchError(
            f"the sketch holds statistics {' '.join(held)}; {' '.join(declared)} are declared"
        )


def n_numbers(header: Mapping[str, Any]) -> int:
    """How many numbers a sketch with this header holds."""
    stated = statistics_in_order(header["blocks"], header.get("ends", {}))
    return sum(rows * kept for _, _, shapes in stated for rows, kept, _ in shapes)


def encode(sketch: Sketch) -> bytes:
    """The file's bytes."""
    return files.seal(
        MAGIC, files.canonical_json(sketch.header), sketch.numbers.astype("<f4").tobytes()
    )


def decode(data: bytes | memoryview, is_verified: bool = False) -> Sketch:
    """The sketch in a file's bytes, verified unless they were before."""
    try:
        header, start = files.unseal(data, MAGIC, is_verified)
    except EnvelopeError as error:
        raise SketchError(str(error)) from None
    return Sketch(header, np.frombuffer(data, dtype="<f4", offset=start))
