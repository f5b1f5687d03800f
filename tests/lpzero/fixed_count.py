"""A count with given scores, for tests of what stands beside a winner."""

from __future__ import annotations

from dataclasses import dataclass

from lpzero.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class FixedCount:
    """A formula's text and its scores (n,) of all rows."""

    formula: str
    scores: FloatArray
