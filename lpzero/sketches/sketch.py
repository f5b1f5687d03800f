"""A sketch: the statistics of one architecture, subsampled to a fixed size, and its file format.

A file is a sealed envelope (`lpzero.files`). The header describes what was sketched and how, and
the shape of every matrix; the numbers are little-endian float32, matrix after matrix, statistics in
the order of their declaration. Equal inputs give equal bytes.
"""

from __future__ import annotations

import dataclasses
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
from lpzero.statistics.losses import LOSSES
from primitives.statistics import STATISTICS
from primitives.tensors import Matrix

if TYPE_CHECKING:
    from spaces.base import Space

# Incremented whenever a change of extraction or format changes the content of a file.
SCHEMA = 1
MAGIC = b"LPZSKT01"


class SketchError(LPZeroError, RuntimeError):
    """Bytes that are not a complete sketch, or numbers that are not valid in one."""


@dataclass(frozen=True, slots=True)
class SketchOptions:
    """How a sketch is built; part of its address.

    limit: elements kept per matrix (None: all); loss: see `statistics.extraction`; seed: of the
    weights; batch_seed: of the tokens or images, and of the labels or the cotangent.
    """

    limit: int | None = 4096
    loss: str = "auto"
    seed: int = 0
    batch_seed: int = 0

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise InputError(f"a limit of {self.limit} elements was given; expected at least 1")
        if self.loss not in LOSSES:
            raise InputError(f"loss {self.loss!r} is unknown; use one of {', '.join(LOSSES)}")


def identity(space: Space[Any], arch: Any, options: SketchOptions) -> dict[str, Any]:
    """Everything that determines the content of a sketch, as JSON values; needs no torch."""
    return {
        "schema": SCHEMA,
        "space": space_identity(space),
        "arch": space.to_json(arch),
        "options": dataclasses.asdict(options),
    }


def address(space: Space[Any], arch: Any, options: SketchOptions) -> str:
    """The sketch's name in a store: a digest of its identity."""
    return hashlib.sha256(files.canonical_json(identity(space, arch, options))).hexdigest()


@lru_cache(maxsize=32)
def space_identity(space: Space[Any]) -> dict[str, Any]:
    """The space's version, its fields (batch shape and vocabulary among them) and its text."""
    fields = {f.name: getattr(space, f.name) for f in dataclasses.fields(space)}  # type: ignore[arg-type]
    named: dict[str, Any] = {
        name: str(value) if isinstance(value, range) else value for name, value in fields.items()
    }
    named |= {"kind": type(space).__name__, "version": space.version}
    if space.reads_text:
        from spaces.batches import pydoc_digest  # loads torch, which most addresses do not need

        named["text"] = pydoc_digest()
    return dict(json.loads(files.canonical_json(named)))


@dataclass(frozen=True, eq=False)
class Sketch:
    """The statistics of one architecture: header, and every number in one row (float32)."""

    header: Mapping[str, Any]
    numbers: NDArray[np.float32]

    def __post_init__(self) -> None:
        for block in self.header["blocks"]:
            if block.keys() != STATISTICS.keys():
                held, declared = " ".join(block), " ".join(STATISTICS)
                raise SketchError(f"the sketch has statistics {held}; {declared} are declared")

    @property
    def n_blocks(self) -> int:
        return len(self.header["blocks"])

    def matrices(self, block: int, statistic: str) -> list[Matrix]:
        """The block's matrices of one statistic, in float64; a new copy on each call."""
        found = self._places[block, statistic]
        return [
            Matrix(
                self.numbers[start : start + rows * kept].reshape(rows, kept).astype(np.float64),
                true,
            )
            for start, rows, kept, true in found
        ]

    def shapes(self, block: int, statistic: str) -> list[tuple[int, int, int]]:
        """(rows, kept columns, true columns) of each matrix."""
        return [(rows, kept, true) for _, rows, kept, true in self._places[block, statistic]]

    @cached_property
    def _places(self) -> dict[tuple[int, str], list[tuple[int, int, int, int]]]:
        places: dict[tuple[int, str], list[tuple[int, int, int, int]]] = {}
        start = 0
        for index, name, shapes in statistics_in_order(self.header["blocks"]):
            places[index, name] = []
            for rows, kept, true in shapes:
                places[index, name].append((start, rows, kept, true))
                start += rows * kept
        return places


def statistics_in_order(blocks: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, str, Any]]:
    """(block, statistic, value) in the order of a file."""
    for index, block in enumerate(blocks):
        for name in STATISTICS:
            yield index, name, block[name]


def encode(sketch: Sketch) -> bytes:
    """The file's bytes."""
    return files.seal(
        MAGIC, files.canonical_json(sketch.header), sketch.numbers.astype("<f4").tobytes()
    )


def decode(data: bytes) -> Sketch:
    """The sketch in a file's bytes, verified."""
    try:
        header, start = files.unseal(data, MAGIC)
    except EnvelopeError as error:
        raise SketchError(str(error)) from None
    return Sketch(header, np.frombuffer(data, dtype="<f4", offset=start))
